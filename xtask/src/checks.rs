//! What is checked without running tests.

use std::process::Command;

use crate::args::Formatting;
use crate::cargo::{cargo, has_subcommand, run};
use crate::error::Error;

/// The features of the runtime that each bring one database.
const DATABASES: [&str; 3] = ["mysql", "postgres", "sqlite"];

/// The compiler of `rust-version` in the workspace's `Cargo.toml`. # MSRV
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");

/// What the checks are done with: a subcommand of cargo, and the component that brings it.
const TOOLS: [(&str, &str); 2] = [("fmt", "rustfmt"), ("clippy", "clippy")];

/// Says what is missing, before anything long begins.
pub(crate) fn tools() -> Result<(), Error> {
    missing_tools(has_subcommand).map_or(Ok(()), |sentence| Err(Error::new(sentence)))
}

fn missing_tools(is_there: impl Fn(&str) -> bool) -> Option<String> {
    let missing: Vec<_> = TOOLS.into_iter().filter(|tool| !is_there(tool.0)).collect();
    let commands: Vec<_> = missing
        .iter()
        .map(|tool| format!("`cargo {}`", tool.0))
        .collect();
    let components: Vec<_> = missing.iter().map(|tool| tool.1).collect();
    let (verb, them) = match missing.len() {
        0 => return None,
        1 => ("is", "it"),
        _ => ("are", "them"),
    };
    Some(format!(
        "{} {verb} not installed here: `rustup component add {}` brings {them}",
        commands.join(" and "),
        components.join(" ")
    ))
}

pub(crate) fn fmt(mode: Formatting) -> Result<(), Error> {
    require("fmt", "rustup component add rustfmt")?;
    match mode {
        Formatting::Write => run(&mut cargo(&["fmt", "--all"]), "formatting"),
        Formatting::Check => run(&mut cargo(&["fmt", "--all", "--check"]), "the format check"),
    }
}

pub(crate) fn clippy() -> Result<(), Error> {
    require("clippy", "rustup component add clippy")?;
    clippy_of(&["--workspace", "--all-targets", "--all-features"])?;
    // All targets are those that every test runs.
    clippy_of(&["--workspace", "--all-features", "--test", "clusters"])?;
    // The library alone: dev-dependencies would bring in features that it forgot to ask for.
    let library = [
        "--package",
        "idempotent-runtime",
        "--lib",
        "--no-default-features",
    ];
    clippy_of(&library)?;
    for database in DATABASES {
        clippy_of(&[&library[..], &["--features", database]].concat())?;
    }
    Ok(())
}

fn clippy_of(selection: &[&str]) -> Result<(), Error> {
    let arguments = [&["clippy", "--quiet"], selection, &["--", "-D", "warnings"]].concat();
    run(&mut cargo(&arguments), "clippy")
}

pub(crate) fn doc() -> Result<(), Error> {
    let mut command = cargo(&[
        "doc",
        "--quiet",
        "--no-deps",
        "--workspace",
        "--all-features",
    ]);
    run(
        command.env("RUSTDOCFLAGS", "-D warnings"),
        "the documentation",
    )
}

pub(crate) fn msrv() -> Result<(), Error> {
    let Some(toolchain) = installed_toolchain(OLDEST) else {
        return Err(Error::new(format!(
            "Rust {OLDEST} is not installed here: `rustup toolchain install {OLDEST}` brings it"
        )));
    };
    // Not $CARGO: only rustup's own `cargo` understands `+`.
    let mut command = Command::new("cargo");
    command.arg(format!("+{toolchain}"));
    command.args(["check", "--workspace", "--all-targets", "--all-features"]);
    run(&mut command, "the check with the oldest compiler")
}

/// Asks rustup, which would otherwise start a download at the first use.
fn installed_toolchain(version: &str) -> Option<String> {
    let output = Command::new("rustup")
        .args(["toolchain", "list"])
        .output()
        .ok()?;
    toolchain_of(version, &String::from_utf8_lossy(&output.stdout))
}

fn toolchain_of(version: &str, list: &str) -> Option<String> {
    let names = list
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let is_wanted = |name: &&str| {
        name.strip_prefix(version)
            .is_some_and(|rest| rest.starts_with(['-', '.']))
    };
    names.filter(is_wanted).map(str::to_owned).next()
}

pub(crate) fn deny() -> Result<(), Error> {
    require("deny", "cargo install --locked cargo-deny")?;
    run(&mut cargo(&["deny", "check"]), "cargo deny")
}

fn require(subcommand: &str, remedy: &str) -> Result<(), Error> {
    if has_subcommand(subcommand) {
        return Ok(());
    }
    Err(Error::new(format!(
        "`cargo {subcommand}` is not installed here: `{remedy}` brings it"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "stable-x86_64-unknown-linux-gnu (active, default)\n\
                        1.9.0-x86_64-unknown-linux-gnu\n\
                        1.94.1-x86_64-unknown-linux-gnu\n\
                        1.95-x86_64-unknown-linux-gnu\n";

    #[test]
    fn a_toolchain_is_found_by_its_version() {
        let name = |version| toolchain_of(version, LIST);
        assert_eq!(
            name("1.94").as_deref(),
            Some("1.94.1-x86_64-unknown-linux-gnu")
        );
        assert_eq!(
            name("1.95").as_deref(),
            Some("1.95-x86_64-unknown-linux-gnu")
        );
    }

    #[test]
    fn all_that_is_missing_is_said_at_once() {
        let clippy =
            "`cargo clippy` is not installed here: `rustup component add clippy` brings it";
        assert_eq!(missing_tools(|name| name == "fmt").as_deref(), Some(clippy));
        let both = "`cargo fmt` and `cargo clippy` are not installed here: \
                    `rustup component add rustfmt clippy` brings them";
        assert_eq!(missing_tools(|_| false).as_deref(), Some(both));
        assert_eq!(missing_tools(|_| true), None);
    }

    #[test]
    fn a_longer_number_is_another_version() {
        assert_eq!(
            toolchain_of("1.9", LIST).as_deref(),
            Some("1.9.0-x86_64-unknown-linux-gnu")
        );
        assert_eq!(toolchain_of("1.93", LIST), None);
    }
}
