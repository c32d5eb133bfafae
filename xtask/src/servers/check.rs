//! Whether a database lets us do what tests do.

use std::process::Output;
use std::sync::{Mutex, PoisonError};

use crate::cargo::{cargo, run};
use crate::error::Error;

const PROGRAM: [&str; 6] = [
    "--quiet",
    "--package",
    "idempotent-tests",
    "--all-features",
    "--bin",
    "check-server",
];

/// Tries; the inner error is the reason why a server cannot be used.
pub(super) fn usable(url: &str) -> Result<Result<(), String>, Error> {
    build()?;
    let mut command = cargo(&["run"]);
    command.args(PROGRAM).args(["--", url]);
    let output = command
        .output()
        .map_err(|error| Error::new(format!("check-server did not start: {error}")))?;
    Ok(if output.status.success() {
        Ok(())
    } else {
        Err(reason(&output))
    })
}

/// Builds once and apart, so that a compiler's error is not taken for a server's.
fn build() -> Result<(), Error> {
    static IS_BUILT: Mutex<bool> = Mutex::new(false);
    let mut is_built = IS_BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_built {
        run(cargo(&["build"]).args(PROGRAM), "the build of check-server")?;
        *is_built = true;
    }
    Ok(())
}

fn reason(output: &Output) -> String {
    let last_line = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.lines()
            .rev()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .map(str::to_owned)
    };
    last_line(&output.stderr)
        .or_else(|| last_line(&output.stdout))
        .unwrap_or_else(|| format!("check-server says nothing ({})", output.status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn said(stdout: &str, stderr: &str) -> String {
        let status = ExitStatus::from_raw(256);
        reason(&Output {
            status,
            stdout: stdout.into(),
            stderr: stderr.into(),
        })
    }

    #[test]
    fn the_reason_is_the_last_line() {
        assert_eq!(
            said("", "warning: x\npassword refused\n\n"),
            "password refused"
        );
        assert_eq!(said("password refused\n", ""), "password refused");
    }

    #[test]
    fn silence_is_reported_as_such() {
        assert_eq!(said("", ""), "check-server says nothing (exit status: 1)");
    }
}
