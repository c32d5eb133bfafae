//! Where storms take place.

use std::path::PathBuf;
use std::process::Command;

use crate::cargo::capture;
use crate::chaos::run::Run;
use crate::chaos::storm::{Fault, Storm};
use crate::chaos::tally::Tally;
use crate::error::Error;
use crate::servers::{POSTGRES_ON_DISK, RABBITMQ, ThrowAway};

/// A `PostgreSQL` and a `RabbitMQ` of our own, and the program whose processes use them.
///
/// Everything ends with this value, and with this process, however it ends.
pub struct Arena {
    program: PathBuf,
    pub(super) postgres: ThrowAway,
    pub(super) rabbitmq: ThrowAway,
    storms: u32,
}

/// Where one storm takes place: a database and queues of its own.
pub(super) struct Stage {
    program: PathBuf,
    options: Vec<String>,
}

impl Arena {
    /// Starts the servers, for a program built of `idempotent-chaos`.
    ///
    /// # Errors
    ///
    /// One sentence that says what is missing, or what a server said.
    pub fn open(program: impl Into<PathBuf>) -> Result<Self, Error> {
        Ok(Self {
            program: program.into(),
            postgres: ThrowAway::start(&POSTGRES_ON_DISK)?,
            rabbitmq: ThrowAway::start(&RABBITMQ)?,
            storms: 0,
        })
    }

    /// Lets a storm pass over everything, then audits the ledger.
    ///
    /// # Errors
    ///
    /// A process ended by itself, a server did not come back, or nothing went on for long. What
    /// the audit finds is no error here: see [`Tally::judge`].
    pub fn run(&mut self, storm: &Storm) -> Result<Tally, Error> {
        eprintln!("{storm}");
        self.storms += 1;
        let stage = self.stage(storm);
        capture(&mut stage.command("prepare"), "the preparation")?;
        Run::start(self, stage, storm)?.finish()
    }

    fn stage(&self, storm: &Storm) -> Stage {
        let mut options = vec![
            format!("--postgres={}", self.postgres.url()),
            format!("--rabbitmq={}", self.rabbitmq.url()),
            format!("--name=chaos_{}", self.storms),
            format!("--messages={}", storm.messages),
            format!("--seed={}", storm.seed),
        ];
        let fault = storm.fault.map(Fault::name);
        options.extend(fault.map(|name| format!("--fault={name}")));
        Stage {
            program: self.program.clone(),
            options,
        }
    }
}

impl Stage {
    pub(super) fn command(&self, task: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(task).args(&self.options);
        command
    }
}
