//! Programs that do not compile, with what the compiler says of them; and
//! handlers of every shape, which compile and run.
//!
//! The `.stderr` files belong to one stable compiler. On another one its words
//! differ, so that the comparison is left out, and the test says so.

#[path = "ui/pass/mod.rs"]
mod pass;

use std::process::Command;

/// The compiler that the `.stderr` files belong to.
const COMPILER: &str = "rustc 1.95.";

#[test]
fn fail() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().unwrap();
    let version = String::from_utf8_lossy(&version.stdout);
    if !version.starts_with(COMPILER) {
        eprintln!(
            "the expected messages are those of {COMPILER}x, this is {version}: not compared"
        );
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/ui/fail/**/*.rs");
}
