//! What the benchmark programs share: arguments, a place of their own on a server,
//! rounds in which every side has its turn, figures for people.

mod args;
mod figures;
mod place;
mod rounds;
mod server;

use std::process::ExitCode;

pub use args::Args;
pub use figures::{Spread, per, quantile};
pub use place::{Place, number, on_server, run};
pub use rounds::{at_once, interleave};
pub use server::{Kind, Server};

/// What goes wrong in a program that only measures.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Says what went wrong.
#[must_use]
pub fn exit(result: Result<(), Failed>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
