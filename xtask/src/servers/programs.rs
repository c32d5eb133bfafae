//! Where a server's programs are.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::cargo::succeeds;
use crate::servers::user::User;
use crate::servers::{Kind, Origin, pypi};

/// The programs of one kind of server, all found, of one installation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Programs(Vec<PathBuf>);

impl Programs {
    /// Looks in `PATH` first, then where Debian keeps them, or where we keep those of Python.
    /// One that cannot run here is passed over.
    pub(super) fn find(kind: &Kind) -> Option<Self> {
        static FOUND: Mutex<BTreeMap<&str, Programs>> = Mutex::new(BTreeMap::new());
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if !found.contains_key(kind.name) {
            // After an installation there may be another user.
            let user = User::running(kind).unwrap_or(User::Ourselves);
            found.insert(kind.name, Self::look(kind, &directories(kind), &user)?);
        }
        found.get(kind.name).cloned()
    }

    fn look(kind: &Kind, directories: &[PathBuf], user: &User) -> Option<Self> {
        if !kind.libraries.iter().all(|path| Path::new(path).is_file()) {
            return None;
        }
        let mut candidates = directories
            .iter()
            .filter_map(|directory| Self::of(kind, directory));
        candidates.find(|programs| programs.run(kind, user))
    }

    /// Those of one installation, which has this directory.
    fn of(kind: &Kind, directory: &Path) -> Option<Self> {
        let is_there = |path: &Path| path.is_file() && !is_wrapper(path);
        let mut names = kind.programs.iter();
        if !names.any(|name| is_there(&directory.join(name))) {
            return None;
        }
        let directories = ["", "../bin", "../sbin"].map(|other| directory.join(other));
        let find = |&name: &&str| {
            let mut paths = directories.iter().map(|directory| directory.join(name));
            paths.find(|path| is_there(path))
        };
        let programs = kind.programs.iter().map(find);
        programs.collect::<Option<_>>().map(Self)
    }

    /// Whether the user may run them all, and the server does: not without its modules, and
    /// wherever it is started.
    fn run(&self, kind: &Kind, user: &User) -> bool {
        let run = |command: &mut Command| {
            user.run(command);
            succeeds(command.current_dir("/"))
        };
        let may_run = |path: &PathBuf| {
            let script = r#"[ -x "$0" ]"#;
            run(Command::new("sh").args(["-c", script]).arg(path))
        };
        self.0.iter().all(may_run)
            && kind
                .proof
                .is_none_or(|proof| run(Command::new(self.last()).arg(proof)))
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

fn directories(kind: &Kind) -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<_> = env::split_paths(&path).collect();
    directories.extend(kind.directories.iter().flat_map(|pattern| expand(pattern)));
    if let Origin::Pypi(_) = kind.origin {
        directories.push(pypi::programs());
    }
    directories
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
    use std::io;
    use std::os::unix::fs::PermissionsExt;
    use std::process;

    use super::*;
    use crate::servers::POSTGRES;

    #[test]
    fn versions_are_ordered_as_numbers() {
        let names = ["9.6", "15", "common", "9.10", "17"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(newest_first(names), ["17", "15", "9.10", "9.6"]);
    }

    const SERVER: Kind = Kind {
        programs: &["maker", "server"],
        proof: Some("--version"),
        ..POSTGRES
    };

    /// Directories with programs, of which some do not work.
    fn installed(name: &str, programs: &[(&str, &str)]) -> io::Result<PathBuf> {
        let root = env::temp_dir().join(format!("idempotent-programs-{}-{name}", process::id()));
        for (path, script) in programs {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap_or(&root))?;
            fs::write(&path, format!("#!/bin/sh\n{script}\n"))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        Ok(root)
    }

    fn found(root: &Path, directories: &[&str]) -> Option<Vec<String>> {
        let directories: Vec<_> = directories.iter().map(|name| root.join(name)).collect();
        let Programs(paths) = Programs::look(&SERVER, &directories, &User::Ourselves)?;
        let path = |path: PathBuf| {
            let path = path.canonicalize().unwrap_or(path);
            path.strip_prefix(root)
                .unwrap_or(&path)
                .display()
                .to_string()
        };
        Some(paths.into_iter().map(path).collect())
    }

    #[test]
    fn programs_are_of_one_installation() -> io::Result<()> {
        let root = installed(
            "one",
            &[
                ("a/maker", ""),
                ("b/server", ""),
                ("c/bin/maker", ""),
                ("c/sbin/server", ""),
            ],
        )?;
        let all = found(&root, &["a", "b", "c/bin", "c/sbin"]);
        let apart = found(&root, &["a", "b"]);
        fs::remove_dir_all(&root)?;
        assert_eq!(
            all,
            Some(vec!["c/bin/maker".to_owned(), "c/sbin/server".to_owned()])
        );
        assert_eq!(apart, None);
        Ok(())
    }

    #[test]
    fn what_cannot_run_is_passed_over() -> io::Result<()> {
        let root = installed(
            "run",
            &[
                ("broken/maker", ""),
                ("broken/server", "exit 127"),
                ("lost/maker", ""),
                ("lost/server", "#"),
                ("closed/maker", ""),
                ("closed/server", ""),
                ("good/maker", ""),
                ("good/server", r#"[ "$1" = --version ] && [ "$PWD" = / ]"#),
            ],
        )?;
        fs::write(root.join("lost/server"), "#!/no/such/python\n")?;
        fs::set_permissions(root.join("closed/maker"), fs::Permissions::from_mode(0o644))?;
        let good = found(&root, &["broken", "lost", "closed", "good"]);
        let none = found(&root, &["broken", "lost", "closed", "nowhere"]);
        fs::remove_dir_all(&root)?;
        assert_eq!(
            good,
            Some(vec!["good/maker".to_owned(), "good/server".to_owned()])
        );
        assert_eq!(none, None);
        Ok(())
    }

    #[test]
    fn a_wrapper_is_known_by_what_it_is_a_link_to() -> io::Result<()> {
        let directory = env::temp_dir().join(format!("idempotent-wrapper-{}", process::id()));
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
