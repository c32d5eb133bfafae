//! Why a program ends before its last delivery.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Why a program ends before its last delivery.
#[derive(Debug)]
pub enum Stop {
    /// It was asked for its help.
    Help(String),
    /// It could not start: a wrong option, no such file, no such database.
    Start(String),
    /// The input or the database broke on the way.
    Broken(String),
    /// Nobody reads the output any more, as in `quickstart | head`.
    OutputClosed,
}

impl Stop {
    /// It could not start.
    pub fn start(why: impl Display) -> Self {
        Self::Start(why.to_string())
    }

    /// Something broke on the way.
    pub fn broken(why: impl Display) -> Self {
        Self::Broken(why.to_string())
    }

    /// Says why, and returns the exit status.
    #[must_use]
    pub fn exit_code(self, program: &str) -> ExitCode {
        // Nobody may listen: then the status alone has to say it.
        let told = match &self {
            Self::Help(text) => io::stdout().write_all(text.as_bytes()),
            Self::Start(why) => writeln!(
                io::stderr(),
                "{program}: {why}\nTry `{program} --help`; nothing was handled."
            ),
            Self::Broken(why) => writeln!(io::stderr(), "{program}: {why}"),
            Self::OutputClosed => Ok(()),
        };
        match self {
            Self::Help(_) if told.is_ok() => ExitCode::SUCCESS,
            Self::Start(_) => ExitCode::from(2),
            Self::Help(_) | Self::Broken(_) | Self::OutputClosed => ExitCode::FAILURE,
        }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::broken(format_args!("cannot write the output: {error}")),
        }
    }
}
