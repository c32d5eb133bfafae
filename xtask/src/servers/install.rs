//! Installing servers with apt-get, where that is allowed and possible.

use std::env;
use std::process::Command;

use crate::cargo::{run, succeeds};
use crate::error::Error;
use crate::servers::user::is_root;
use crate::servers::{Install, Kind, NO_INSTALL};

/// How we become root.
enum Root {
    Already,
    Sudo,
}

impl Install {
    /// What the task that runs a test says.
    pub(super) fn from_environment() -> Self {
        if env::var_os(NO_INSTALL).is_some() {
            Self::Refused
        } else {
            Self::Allowed
        }
    }
}

/// Installs the servers; of none, does nothing.
pub(super) fn install(kinds: &[&Kind], install: Install) -> Result<(), Error> {
    if kinds.is_empty() {
        return Ok(());
    }
    let root = root(kinds, install)?;
    let packages: Vec<_> = kinds
        .iter()
        .flat_map(|kind| kind.debian_packages)
        .copied()
        .collect();
    eprintln!("installing {} with apt-get", packages.join(", "));
    run(&mut apt_get(&root, &["update"]), "apt-get update")?;
    let arguments = [&["install", "-y", "--no-install-recommends"], &packages[..]].concat();
    run(
        &mut apt_get(&root, &arguments),
        "the installation of the servers",
    )
}

/// Says why [`install`] would not try.
pub(super) fn may(kinds: &[&Kind], install: Install) -> Result<(), Error> {
    root(kinds, install).map(drop)
}

fn root(kinds: &[&Kind], install: Install) -> Result<Root, Error> {
    let refuse = |why: &str| Err(Error::new(sentence(kinds, why)));
    if install == Install::Refused {
        return refuse("installing is not allowed");
    }
    if !succeeds(Command::new("apt-get").arg("--version")) {
        return refuse("there is no apt-get to install it with");
    }
    if is_root() {
        return Ok(Root::Already);
    }
    if succeeds(Command::new("sudo").args(["-n", "true"])) {
        return Ok(Root::Sudo);
    }
    refuse("installing needs root, or sudo without a password")
}

fn sentence(kinds: &[&Kind], why: &str) -> String {
    let join = |part: fn(&Kind) -> String| {
        kinds
            .iter()
            .map(|kind| part(kind))
            .collect::<Vec<_>>()
            .join(" and ")
    };
    format!(
        "the tests need {}, and {why}: install {}, or name a running server in {}",
        join(|kind| kind.name.to_owned()),
        join(|kind| kind.debian_packages.join(" and ")),
        join(|kind| kind.variable.to_owned()),
    )
}

fn apt_get(root: &Root, arguments: &[&str]) -> Command {
    // `env` because sudo does not hand on the environment. Runlevel 1 asks the packages not to
    // start their own servers; should one start all the same, it is not used.
    let environment = ["env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"];
    let patience = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300"];
    let sudo: &[&str] = match root {
        Root::Already => &[],
        Root::Sudo => &["sudo", "-n"],
    };
    let words = [sudo, &environment, &patience, arguments].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(std::process::Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::KINDS;

    #[test]
    fn a_refusal_is_one_sentence_with_the_way_out() {
        let error = may(&KINDS, Install::Refused).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the tests need MariaDB and PostgreSQL, and installing is not allowed: \
             install mariadb-server and postgresql, or name a running server in \
             IDEMPOTENT_MARIADB_URL and IDEMPOTENT_POSTGRES_URL"
        );
    }

    #[test]
    fn nothing_is_installed_for_nobody() {
        assert!(install(&[], Install::Refused).is_ok());
    }

    #[test]
    fn sudo_does_not_lose_the_environment() {
        let command = apt_get(&Root::Sudo, &["update"]);
        let words: Vec<_> = command
            .get_args()
            .map(|word| word.to_string_lossy())
            .collect();
        assert_eq!(words[..3], ["-n", "env", "DEBIAN_FRONTEND=noninteractive"]);
        assert_eq!(words.last().map(AsRef::as_ref), Some("update"));
    }
}
