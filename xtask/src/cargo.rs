//! Running cargo, and other programs, in the root of the workspace.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::error::Error;

/// The cargo that runs this program, in the root of the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// Runs to the end; `what` names the work in the error.
pub(crate) fn run(command: &mut Command, what: &str) -> Result<(), Error> {
    let status = command.status();
    judge(status, command, what)
}

/// What a program said.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs to the end without a word; if it fails, its errors are shown after all.
pub(crate) fn capture(command: &mut Command, what: &str) -> Result<Printed, Error> {
    let (status, stdout, stderr) = match command.stdin(Stdio::null()).output() {
        Ok(output) => (Ok(output.status), output.stdout, output.stderr),
        Err(error) => (Err(error), Vec::new(), Vec::new()),
    };
    let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let judged = judge(status, command, what);
    if judged.is_err() {
        eprint!("{stderr}");
    }
    judged.map(|()| Printed { stdout, stderr })
}

fn judge(status: io::Result<ExitStatus>, command: &Command, what: &str) -> Result<(), Error> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::new(format!(
            "{what} failed ({}: {status})",
            line(command)
        ))),
        Err(error) => Err(Error::new(format!(
            "{what} did not start ({}: {error})",
            line(command)
        ))),
    }
}

/// Whether `cargo NAME` is a command here; asking runs nothing else.
pub(crate) fn has_subcommand(name: &str) -> bool {
    succeeds(&mut cargo(&[name, "--version"]))
}

/// Whether a command runs and ends well, without a word of its output.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// The directory of the workspace.
pub(crate) fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map(Path::to_owned).unwrap_or(package)
}

/// The command as a person would type it.
fn line(command: &Command) -> String {
    let name = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let mut words = vec![name.to_string_lossy()];
    words.extend(
        command
            .get_args()
            .map(|argument| argument.to_string_lossy()),
    );
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_work_and_the_command() {
        let error = run(Command::new("false").arg("now"), "the work").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the work failed (false now: exit status: 1)"
        );
    }

    #[test]
    fn a_missing_program_is_an_error_too() {
        let error = run(&mut Command::new("/no/such-program"), "the work").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("the work did not start (such-program: "),
            "{error}"
        );
    }

    #[test]
    fn what_a_program_says_is_captured() {
        let mut command = Command::new("sh");
        let printed = capture(command.args(["-c", "echo out; echo err >&2"]), "the work");
        let Printed { stdout, stderr } = printed.unwrap();
        assert_eq!((stdout.as_str(), stderr.as_str()), ("out\n", "err\n"));
    }

    #[test]
    fn a_failure_is_not_captured_away() {
        let error = capture(&mut Command::new("false"), "the work").unwrap_err();
        assert_eq!(error.to_string(), "the work failed (false: exit status: 1)");
        let error = capture(&mut Command::new("/no/such-program"), "the work").unwrap_err();
        assert!(error.to_string().starts_with("the work did not start"));
    }

    #[test]
    fn the_root_is_the_workspace() {
        assert!(root().join("xtask/src/cargo.rs").exists());
    }
}
