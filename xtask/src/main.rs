//! The tasks of this workspace: `cargo xtask help` lists them.

use std::process::ExitCode;

fn main() -> ExitCode {
    xtask::main(std::env::args().skip(1))
}
