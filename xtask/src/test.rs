//! Everything that runs tests.

use std::process::Command;

use crate::args::{Expected, Formatting, Length};
use crate::cargo::{cargo, has_subcommand, run};
use crate::checks;
use crate::error::Error;
use crate::servers::{self, Install, Policy, Server};
use crate::steps::{heading, step};

/// The whole of it. The test runner's summary is the last thing printed when all is well.
pub(crate) fn all(length: Length, policy: Policy) -> Result<(), Error> {
    step("tools", || {
        checks::tools()?;
        servers::tools(policy.install)
    })?;
    let servers = step("servers", || servers::start(policy))?;
    if length == Length::Full {
        step("clusters", || servers::for_clusters(policy.install))?;
    }
    step("fmt", || checks::fmt(Formatting::Check))?;
    step("clippy", checks::clippy)?;
    step("doc", checks::doc)?;
    let environment = Environment {
        length,
        policy,
        servers: &servers,
    };
    step("doc tests", || environment.doc_tests())?;
    if length == Length::Full {
        step("tests of clusters", || environment.clusters())?;
    }
    environment.tests()
}

/// The compile-fail and compile-pass cases, and the page that shows some of them.
pub(crate) fn ui(expected: Expected) -> Result<(), Error> {
    for (test, bless) in [
        ("ui", ("TRYBUILD", "overwrite")),
        ("messages", ("UPDATE_EXPECT", "1")),
    ] {
        let mut command = cargo(&["test", "--package", "idempotent-tests", "--all-features"]);
        command.args(["--test", test]);
        if expected == Expected::Bless {
            command.env(bless.0, bless.1);
        }
        run(&mut command, "the ui test")?;
    }
    Ok(())
}

/// The expansions of the macro.
pub(crate) fn snapshots(expected: Expected) -> Result<(), Error> {
    let mut command = cargo(&["test", "--package", "idempotent-macros", "--lib"]);
    if expected == Expected::Bless {
        command.env("UPDATE_EXPECT", "1");
    }
    run(&mut command, "the snapshot test")
}

/// What tests see of how they are run.
struct Environment<'a> {
    length: Length,
    policy: Policy,
    servers: &'a [Server],
}

impl Environment<'_> {
    fn doc_tests(&self) -> Result<(), Error> {
        let mut command = cargo(&["test", "--quiet", "--doc", "--workspace", "--all-features"]);
        run(self.give(&mut command), "a doc test")
    }

    /// One after the other: a node that gets no time is taken for a dead one.
    fn clusters(&self) -> Result<(), Error> {
        let mut command = cargo(&["test", "--workspace", "--all-features"]);
        command.args(["--test", "clusters", "--", "--test-threads", "1"]);
        run(self.give(&mut command), "a test of a cluster")
    }

    fn tests(&self) -> Result<(), Error> {
        let mut command = if has_subcommand("nextest") {
            heading("tests (cargo nextest)");
            cargo(&[
                "nextest",
                "run",
                "--workspace",
                "--all-features",
                "--profile",
                self.profile(),
            ])
        } else {
            heading("tests (cargo test: cargo-nextest is not installed)");
            let selection = ["--lib", "--bins", "--tests", "--examples"];
            cargo(&[&["test", "--workspace", "--all-features"], &selection[..]].concat())
        };
        run(self.give(&mut command), "a test")
    }

    /// The profile of `.config/nextest.toml`.
    fn profile(&self) -> &'static str {
        match self.length {
            Length::Full => "full",
            Length::Short => "default",
        }
    }

    fn give<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        for server in self.servers {
            command.env(server.variable(), server.url());
        }
        if self.length == Length::Full {
            command.env("IDEMPOTENT_FULL", "1");
        }
        if self.policy.install == Install::Refused {
            command.env(servers::NO_INSTALL, "1");
        }
        command
    }
}
