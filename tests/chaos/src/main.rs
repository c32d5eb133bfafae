//! The processes of `cargo xtask chaos`: who publishes, consumes, prunes, and audits the ledger.
//!
//! Each may be killed at any moment, and is started again by the driver, which reads what they
//! print. All say what they did after it was done: what a killed one did last is never said.

mod audit;
mod broker;
mod consume;
mod desk;
mod entry;
mod leash;
mod ledger;
mod options;
mod outbox;
mod posting;
mod prepare;
mod prune;
mod say;
mod settle;

use std::process::ExitCode;

use crate::options::{Options, Task};

type Failed = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = match Options::from_args() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("idempotent-chaos: {error}\n\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    if options.task.lasts() {
        leash::hold();
    }
    match run(&options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("idempotent-chaos: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<(), Failed> {
    match options.task {
        Task::Prepare => prepare::prepare(options).await?,
        Task::Publish => outbox::publish(options).await,
        Task::Consume => consume::consume(options).await,
        Task::Prune => prune::prune(options).await,
        Task::Settle => settle::settle(options).await?,
    }
    Ok(())
}
