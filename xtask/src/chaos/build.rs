//! The program whose processes a storm meets.

use std::path::PathBuf;
use std::process::Stdio;

use crate::cargo::cargo;
use crate::error::Error;

/// Builds it, and says where it is.
pub(super) fn program() -> Result<PathBuf, Error> {
    let mut command = cargo(&["build", "--package", "idempotent-chaos"]);
    command.args([
        "--quiet",
        "--bins",
        "--message-format",
        "json-render-diagnostics",
    ]);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Error::new(format!("cargo did not start: {error}")))?;
    if !output.status.success() {
        return Err(Error::new("the build of idempotent-chaos failed"));
    }
    executable(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| Error::new("cargo does not say where idempotent-chaos is"))
}

/// The only one that cargo tells of.
fn executable(messages: &str) -> Option<PathBuf> {
    let (_, rest) = messages.split_once(r#""executable":""#)?;
    let (path, _) = rest.split_once('"')?;
    Some(path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_found_among_what_else_was_built() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","executable":null,"fresh":true}"#,
            "\n",
            r#"{"reason":"compiler-artifact","executable":"/target/debug/it","fresh":true}"#,
            "\n",
        );
        assert_eq!(executable(messages), Some("/target/debug/it".into()));
        assert_eq!(executable(r#"{"executable":null}"#), None);
    }
}
