//! A service as a person starts it: a process.

use std::process::{Command, ExitStatus};

use crate::running::{Fresh, Running};

/// A service that listens.
pub(crate) struct Server {
    process: Running,
    pub(crate) url: String,
}

impl Server {
    /// Starts it, and waits until it listens.
    pub(crate) fn start(program: &str, (variable, secret): (&str, &str), db: &Fresh) -> Self {
        let mut command = Command::new(program);
        command.args(["--listen", "127.0.0.1:0", "--database", &db.url()]);
        command.env(variable, secret);
        let (process, line) = Running::start_and_hear(command, "listening on ");
        let url = line.trim_start_matches("listening on ").split(';').next();
        let url = url.expect("there is an address").to_owned();
        Self { process, url }
    }

    /// Asks it to end, as a supervisor does.
    pub(crate) fn terminate(&self) {
        self.process.signal("TERM");
    }

    /// Waits until it has ended; what it has shown, too.
    pub(crate) fn ended(self) -> (ExitStatus, Vec<String>) {
        self.process.ended()
    }

    /// Ends it as a crash does (SIGKILL).
    pub(crate) fn crash(self) {
        self.process.kill();
    }
}

/// Starts a service without its secret, and returns what it says.
pub(crate) fn refuses_to_start(program: &str, variable: &str, secret: Option<&str>) -> String {
    let mut command = Command::new(program);
    // It is not to come so far as to connect.
    command.args(["--database", "postgres://127.0.0.1:1/none"]);
    command.env_remove(variable);
    if let Some(secret) = secret {
        command.env(variable, secret);
    }
    let output = command.output().expect("it starts");
    assert!(!output.status.success());
    String::from_utf8(output.stderr).expect("it is a text")
}
