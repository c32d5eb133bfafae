//! A service as a person starts it: a process.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};

use crate::running::Fresh;

/// A service that listens.
pub(crate) struct Server {
    process: Child,
    pub(crate) url: String,
    shown: Option<JoinHandle<String>>,
}

impl Server {
    /// Starts it, and waits until it listens.
    pub(crate) fn start(program: &str, (variable, secret): (&str, &str), db: &Fresh) -> Self {
        let mut process = Command::new(program)
            .args(["--listen", "127.0.0.1:0", "--database", &db.url()])
            .env(variable, secret)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stdout = BufReader::new(process.stdout.take().expect("it is a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("it is a text");
        let url = line
            .strip_prefix("listening on ")
            .and_then(|rest| rest.split(';').next())
            .unwrap_or_else(|| panic!("it does not listen: {line}"))
            .to_owned();
        let shown = thread::spawn(move || {
            let mut rest = String::new();
            stdout.read_to_string(&mut rest).expect("it is a text");
            rest
        });
        Self {
            process,
            url,
            shown: Some(shown),
        }
    }

    /// Asks it to end, as a supervisor does.
    pub(crate) fn terminate(&self) {
        let killed = Command::new("kill")
            .arg(self.process.id().to_string())
            .status()
            .expect("there is `kill`");
        assert!(killed.success());
    }

    /// Waits until it has ended; what it has shown, too.
    pub(crate) fn ended(mut self) -> (ExitStatus, String) {
        let status = self.process.wait().expect("it ends");
        let shown = self.shown.take().expect("it is taken once");
        (status, shown.join().expect("it is read"))
    }

    /// Ends it as a crash does (SIGKILL).
    pub(crate) fn crash(mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it ends");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
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
