//! Where a server's programs are.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::servers::{Kind, Origin, pypi};

/// The programs of one kind of server, all found.
pub(super) struct Programs(Vec<PathBuf>);

impl Programs {
    /// Looks in `PATH` first, then where Debian keeps them, or where we keep those of Python.
    pub(super) fn find(kind: &Kind) -> Option<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let mut directories: Vec<_> = env::split_paths(&path).collect();
        directories.extend(kind.directories.iter().flat_map(|pattern| expand(pattern)));
        if let Origin::Pypi(_) = kind.origin {
            directories.push(pypi::programs());
        }
        let exists = |path: &Path| path.is_file() && !is_wrapper(path);
        let find = |&name: &&str| first(name, &directories, exists);
        kind.programs
            .iter()
            .map(find)
            .collect::<Option<_>>()
            .map(Self)
    }

    /// The server itself.
    pub(super) fn last(&self) -> &Path {
        self.0.last().map_or(Path::new(""), PathBuf::as_path)
    }

    pub(super) fn command(&self, name: &str) -> Command {
        Command::new(self.path(name))
    }

    pub(super) fn path<'a>(&'a self, name: &'a str) -> &'a Path {
        let path = self.0.iter().find(|path| path.ends_with(name));
        path.map_or(Path::new(name), PathBuf::as_path)
    }
}

fn first(name: &str, directories: &[PathBuf], exists: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    directories
        .iter()
        .map(|directory| directory.join(name))
        .find(|path| exists(path))
}

/// Whether it is Debian's, around programs that it keeps elsewhere: it insists on its own user,
/// directory and log.
fn is_wrapper(path: &Path) -> bool {
    path.canonicalize()
        .is_ok_and(|path| path.ends_with("rabbitmq-script-wrapper"))
}

/// The directories that a pattern such as `/usr/lib/postgresql/*/bin` stands for.
fn expand(pattern: &str) -> Vec<PathBuf> {
    let Some((parent, rest)) = pattern.split_once("/*/") else {
        return vec![pattern.into()];
    };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let names = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let path = |name| Path::new(parent).join(name).join(rest);
    newest_first(names).into_iter().map(path).collect()
}

/// Versions in falling order; a name that is no version is none of ours.
fn newest_first(names: Vec<String>) -> Vec<String> {
    let numbers = |name: &str| {
        name.split('.')
            .map(|part| part.parse::<u32>().ok())
            .collect::<Option<Vec<_>>>()
    };
    let mut versions: Vec<_> = names
        .into_iter()
        .filter_map(|name| Some((numbers(&name)?, name)))
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_numbers() {
        let names = ["9.6", "15", "common", "9.10", "17"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(newest_first(names), ["17", "15", "9.10", "9.6"]);
    }

    #[test]
    fn the_first_directory_wins() {
        let directories = ["/opt/bin", "/usr/lib/17/bin", "/usr/lib/15/bin"].map(PathBuf::from);
        let without_opt = |path: &Path| !path.starts_with("/opt");
        let found = |exists: fn(&Path) -> bool| first("initdb", &directories, exists);
        assert_eq!(found(|_| true), Some("/opt/bin/initdb".into()));
        assert_eq!(
            first("initdb", &directories, without_opt),
            Some("/usr/lib/17/bin/initdb".into())
        );
        assert_eq!(found(|_| false), None);
    }

    #[test]
    fn a_wrapper_is_known_by_what_it_is_a_link_to() -> std::io::Result<()> {
        let directory = env::temp_dir().join(format!("idempotent-wrapper-{}", std::process::id()));
        fs::create_dir_all(&directory)?;
        let wrapper = directory.join("rabbitmq-script-wrapper");
        let (link, plain) = (directory.join("link"), directory.join("rabbitmq-server"));
        fs::write(&wrapper, "")?;
        fs::write(&plain, "")?;
        std::os::unix::fs::symlink("rabbitmq-script-wrapper", &link)?;
        let found = [&wrapper, &link, &plain].map(|path| is_wrapper(path));
        fs::remove_dir_all(&directory)?;
        assert_eq!(found, [true, true, false]);
        Ok(())
    }

    #[test]
    fn a_plain_directory_stands_for_itself() {
        assert_eq!(expand("/usr/sbin"), [PathBuf::from("/usr/sbin")]);
        assert!(expand("/no/such/*/bin").is_empty());
    }
}
