//! The command line.

use std::path::PathBuf;

use lexopt::{Arg, Parser, ValueExt};

use crate::database::Effect;
use crate::stop::Stop;

/// What is particular to one program.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// What it does, whatever is delivered how often.
    pub promise: &'static str,
    /// The events that come with it.
    pub events: &'static str,
    /// The database it uses unless told otherwise.
    pub database: &'static str,
    /// What its handler writes.
    pub effect: Effect,
}

/// What the user asked for.
#[derive(Debug)]
pub struct Options {
    /// The file of events; `-` is the standard input.
    pub events: PathBuf,
    /// The URL of the database.
    pub database: String,
    /// Whether to forget what earlier runs left.
    pub fresh: bool,
}

impl Options {
    /// Reads the command line of this process.
    ///
    /// # Errors
    ///
    /// An unknown option, or one without its value; or the help was asked for.
    pub fn from_args(program: &Program) -> Result<Self, Stop> {
        Self::parse(program, Parser::from_env())
    }

    fn parse(program: &Program, mut arguments: Parser) -> Result<Self, Stop> {
        let mut options = Self {
            events: program.events.into(),
            database: program.database.to_owned(),
            fresh: false,
        };
        while let Some(argument) = arguments.next().map_err(Stop::start)? {
            match argument {
                Arg::Long("events") => {
                    options.events = arguments.value().map_err(Stop::start)?.into();
                }
                Arg::Long("database") => {
                    let value = arguments.value().and_then(ValueExt::string);
                    options.database = value.map_err(Stop::start)?;
                }
                Arg::Long("fresh") => options.fresh = true,
                Arg::Short('h') | Arg::Long("help") => return Err(Stop::Help(program.help())),
                other => return Err(Stop::start(other.unexpected())),
            }
        }
        Ok(options)
    }
}

impl Program {
    fn help(&self) -> String {
        let Self {
            name,
            promise,
            database,
            effect: Effect { scope, table, .. },
            ..
        } = self;
        format!(
            "\
{promise}
Run it twice: the second time, all deliveries are duplicates.

Usage: {name} [--events FILE] [--database URL] [--fresh]

  --events FILE    deliveries, one JSON object a line; `-` reads the standard
                   input and handles each line when it arrives
                   [default: the file that comes with the example]
  --database URL   sqlite:FILE, postgres://…, mysql://… or mariadb://…
                   [default: {database}, in the current folder]
  --fresh          start from nothing. SQLite: the file is deleted, unless it
                   holds tables of others. Servers: the table `{table}`
                   is dropped; of `processed_messages`, which other services
                   share, only the rows with the scope `{scope}` go
  --help           this text

Exit status: 0 every delivery was handled, 1 some failed (they are named on the
standard error) or the end was not reached, 2 it could not start.
"
        )
    }
}
