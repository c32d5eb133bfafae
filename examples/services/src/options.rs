//! The command line, which all programs share.

use std::env;
use std::fmt::Display;
use std::str::FromStr;

use lexopt::{Arg, Parser, ValueExt as _};

/// What a program is asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Of Postgres.
    pub database: String,
    /// Of the broker.
    pub broker: String,
    /// What its queues, streams and topics are called.
    pub name: String,
    /// How many messages are handled in one transaction, at most.
    pub batch: usize,
    /// How many events are published first, for the show, each twice.
    pub publish: u32,
    /// Show the last line only.
    pub quiet: bool,
}

/// What a program is, for its help.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// As it is started.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// The broker that is used if none is named.
    pub broker: &'static str,
    /// What it needs besides, in the environment.
    pub needs: &'static str,
}

impl Options {
    /// Reads the command line. Asked for help, it prints that and ends the program.
    ///
    /// # Errors
    ///
    /// Names what it does not understand.
    pub fn from_args(program: &Program) -> Result<Self, lexopt::Error> {
        let mut options = Self {
            database: env::var("DATABASE_URL").unwrap_or_else(|_| DATABASE.to_owned()),
            broker: program.broker.to_owned(),
            name: "transfers".to_owned(),
            batch: 1,
            publish: 0,
            quiet: false,
        };
        let mut args = Parser::from_env();
        while let Some(arg) = args.next()? {
            match arg {
                Arg::Long("database") => options.database = args.value()?.string()?,
                Arg::Long("broker") => options.broker = args.value()?.string()?,
                Arg::Long("name") => options.name = args.value()?.string()?,
                Arg::Long("batch") => options.batch = number(&mut args)?,
                Arg::Long("publish") => options.publish = number(&mut args)?,
                Arg::Long("quiet") => options.quiet = true,
                Arg::Long("help") | Arg::Short('h') => {
                    println!("{}", program.help());
                    std::process::exit(0);
                }
                other => return Err(other.unexpected()),
            }
        }
        if options.batch == 0 {
            return Err("`--batch` is at least 1".into());
        }
        Ok(options)
    }
}

impl Program {
    fn help(&self) -> String {
        let Self {
            name,
            about,
            broker,
            needs,
        } = self;
        format!(
            "{about}\n\n\
             usage: {name} [options]\n\n\
             --database URL   Postgres; or DATABASE_URL in the environment [{DATABASE}]\n\
             --broker URL     [{broker}]\n\
             --name NAME      of queues, streams and topics [transfers]\n\
             --batch N        messages in one transaction, at most [1]\n\
             --publish N      publish N events first, each twice, as a relay may [0]\n\
             --quiet          show the last line only\n\n\
             {needs}It stops at Ctrl-C."
        )
    }
}

pub(crate) const DATABASE: &str = "postgres://postgres@127.0.0.1:5432/postgres";

fn number<T: FromStr<Err: Display + std::error::Error + Send + Sync + 'static>>(
    args: &mut Parser,
) -> Result<T, lexopt::Error> {
    args.value()?.parse()
}
