//! The tasks of this workspace, and the servers its tests need.
//!
//! `cargo xtask help` lists the tasks. Tests that kill or restart a server take a
//! [`servers::ThrowAway`] of their own from here.

mod args;
mod cargo;
pub mod chaos;
mod checks;
mod compile_time;
mod error;
pub mod servers;
mod steps;
mod test;

use std::process::ExitCode;

use crate::args::Task;
pub use crate::error::Error;

/// Runs the task that the arguments name, and says how it went.
pub fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let task = match Task::parse(&arguments.collect::<Vec<_>>()) {
        Ok(task) => task,
        Err(error) => {
            eprintln!("xtask: {error}\n\n{}", args::USAGE);
            return ExitCode::from(2);
        }
    };
    match run(task) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<ExitCode, Error> {
    match task {
        Task::Chaos(storm) => return chaos::run(&storm),
        Task::Help => println!("{}", args::USAGE),
        Task::Test(length, policy) => test::all(length, policy)?,
        Task::Servers(policy) => servers::show(policy)?,
        Task::Fmt(mode) => checks::fmt(mode)?,
        Task::Clippy => checks::clippy()?,
        Task::Doc => checks::doc()?,
        Task::CompileTime(rounds) => compile_time::run(rounds)?,
        Task::Msrv => checks::msrv()?,
        Task::Deny => checks::deny()?,
        Task::Ui(expected) => test::ui(expected)?,
        Task::Snapshots(expected) => test::snapshots(expected)?,
    }
    Ok(ExitCode::SUCCESS)
}
