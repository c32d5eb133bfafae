//! The command line.

use std::error::Error;
use std::str::FromStr;

use lexopt::{Arg, Parser, ValueExt as _};
use sqlx::postgres::PgConnectOptions;
use xtask::chaos::Fault;

use crate::entry::Order;

pub(crate) const USAGE: &str = "\
usage: idempotent-chaos TASK OPTION…, as `cargo xtask chaos` starts it

  prepare              makes the database, its tables, and the queues
  publish              publishes each event until it is confirmed, some a second time
  consume              posts events to the ledger until it is killed
  prune                deletes keys that have expired, until it is killed
  settle               posts what is left in the queues, and audits the ledger

  --postgres URL       the server
  --rabbitmq URL
  --name NAME          of the database, the exchange and the queues
  --messages N         how many events there are
  --seed N             of the order in which they are published
  --from N             where in that order to begin [0]
  --worker N           who posts, for the ledger [0]
  --fault NAME         what the consumer does wrong: `early-ack` or `no-key`";

/// What a process is asked to do.
pub(crate) struct Options {
    pub(crate) task: Task,
    pub(crate) server: PgConnectOptions,
    pub(crate) broker: String,
    pub(crate) name: String,
    pub(crate) messages: u32,
    pub(crate) seed: u64,
    pub(crate) from: usize,
    pub(crate) worker: i32,
    pub(crate) fault: Option<Fault>,
}

#[derive(Clone, Copy)]
pub(crate) enum Task {
    Prepare,
    Publish,
    Consume,
    Prune,
    Settle,
}

impl Options {
    pub(crate) fn from_args() -> Result<Self, lexopt::Error> {
        let mut args = Parser::from_env();
        let task = match args.next()? {
            Some(Arg::Value(task)) => task.parse()?,
            Some(other) => return Err(other.unexpected()),
            None => return Err("which task?".into()),
        };
        let (mut server, mut broker, mut name) = (None, None, None);
        let (mut messages, mut seed, mut from, mut worker, mut fault) = (0, 0, 0, 0, None);
        while let Some(arg) = args.next()? {
            match arg {
                Arg::Long("postgres") => server = Some(value(&mut args)?),
                Arg::Long("rabbitmq") => broker = Some(value(&mut args)?),
                Arg::Long("name") => name = Some(value(&mut args)?),
                Arg::Long("messages") => messages = value(&mut args)?,
                Arg::Long("seed") => seed = value(&mut args)?,
                Arg::Long("from") => from = value(&mut args)?,
                Arg::Long("worker") => worker = value(&mut args)?,
                Arg::Long("fault") => fault = Some(value(&mut args)?),
                other => return Err(other.unexpected()),
            }
        }
        Ok(Self {
            task,
            server: server.ok_or("`--postgres` is missing")?,
            broker: broker.ok_or("`--rabbitmq` is missing")?,
            name: name.ok_or("`--name` is missing")?,
            messages,
            seed,
            from,
            worker,
            fault,
        })
    }

    /// The order in which the events are published.
    pub(crate) fn order(&self) -> Order {
        Order::of(self.messages, self.seed)
    }
}

fn value<T: FromStr>(args: &mut Parser) -> Result<T, lexopt::Error>
where
    T::Err: Into<Box<dyn Error + Send + Sync>>,
{
    args.value()?.parse()
}

impl Task {
    /// Whether it may go on for long, and the driver holds its input as long as it is there.
    pub(crate) const fn lasts(self) -> bool {
        !matches!(self, Self::Prepare)
    }
}

impl FromStr for Task {
    type Err = String;

    fn from_str(task: &str) -> Result<Self, String> {
        match task {
            "prepare" => Ok(Self::Prepare),
            "publish" => Ok(Self::Publish),
            "consume" => Ok(Self::Consume),
            "prune" => Ok(Self::Prune),
            "settle" => Ok(Self::Settle),
            _ => Err("there is no such task".to_owned()),
        }
    }
}
