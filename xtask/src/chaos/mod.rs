//! A storm over consumers, their broker and their database, and the audit after it.
//!
//! The processes are those of the package `idempotent-chaos`. A test of that package calls
//! [`Arena`] with its own program; `cargo xtask chaos` builds it first.

mod arena;
mod build;
mod crew;
mod progress;
mod run;
mod said;
mod storm;
mod tally;

use std::process::ExitCode;

use crate::error::Error;
use crate::steps::step;

pub use crate::chaos::arena::Arena;
pub use crate::chaos::said::{Audited, Handled, Said};
pub use crate::chaos::storm::{Fault, Storm, second_copies};
pub use crate::chaos::tally::Tally;

/// `cargo xtask chaos`: the last line says what became of it.
pub(crate) fn run(storm: &Storm) -> Result<ExitCode, Error> {
    let program = step("build", build::program)?;
    let mut arena = step("servers", || Arena::open(program))?;
    let tally = step("storm", || arena.run(storm))?;
    drop(arena);
    let code = match tally.judge() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    };
    println!("{tally}");
    Ok(code)
}
