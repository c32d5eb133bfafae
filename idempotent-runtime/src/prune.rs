//! Pruning: deleting the keys whose time has come.

use std::fmt::{self, Debug, Formatter};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use sqlx::Pool;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;

use crate::attempts::Backoff;
use crate::error::{Cause, Error};
use crate::processed::check_scope;
use crate::session::Session;
use crate::store::{Due, Store};
use crate::table::Table;

/// Deletes keys whose time has come, in small batches, beside any number of
/// claims and other pruners.
///
/// Each row carries its own expiry (`retain = "7 days"`, counted by the database
/// from the claim on), so that a pruner knows nothing of the handlers: run it in
/// one of the services, in a process of its own, or from a cron job, [once](Self::run)
/// or [in the background](Self::start).
///
/// **A duplicate that comes after its key was pruned runs again.** So `retain` must
/// be longer than the latest redelivery, dead letters that are replayed by hand
/// included; `redelivery` in the attribute has that checked. Until a row is pruned
/// it makes duplicates, expired or not.
///
/// Rows without an expiry (of handlers without `retain`, or imported) stay, unless
/// [`older_than`](Self::older_than) names their scope.
///
/// # How
///
/// A batch is one short statement that commits by itself: nothing is left open or
/// locked when the pruner is dropped, killed or cut off. It passes over rows that
/// others have locked and comes back to them later, so that it neither waits for a
/// claim nor meets it in a deadlock. A claim of a key that is in a batch waits for
/// the batch, some milliseconds, and is a new message then.
///
/// On Postgres one pruner at a time works on a table, by an advisory lock that
/// ends with the batch; on MariaDB from 10.6 on two of them share the rows. Older
/// ones do not know `SKIP LOCKED`: there a batch waits for the transactions that
/// hold its rows, at most `innodb_lock_wait_timeout` long, and is then tried again.
/// On SQLite everyone takes turns.
///
/// It needs the rights to SELECT and DELETE; on Postgres also that to UPDATE any
/// column, if it is to pass over locked rows: without, it waits for them, which no
/// claim locks. On MariaDB it needs a `binlog_format` other than `STATEMENT`. For
/// speed it needs an index on `expires_at`, which [`migrate`](Table::migrate) makes.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "sqlite")] mod example {
/// use idempotent_runtime::{idempotent, migrate, pruner, transact};
/// use sqlx::sqlite::{Sqlite, SqlitePoolOptions};
/// use sqlx::Transaction;
///
/// #[idempotent(key(order_id), scope = "orders.accept", retain = "7 days", redelivery = "4 days")]
/// async fn accept(tx: &mut Transaction<'_, Sqlite>, order_id: i64) -> sqlx::Result<()> {
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
/// migrate(&pool).await?;
/// let _ = transact!(&pool, tx => accept(tx, 7)).await?;
/// assert_eq!(pruner(&pool).run().await?.rows, 0);
///
/// // Eight days later
/// sqlx::query("UPDATE processed_messages SET expires_at = processed_at").execute(&pool).await?;
/// assert_eq!(pruner(&pool).run().await?.rows, 1);
/// # Ok(())
/// # }
/// # }
/// # fn main() {
/// #     #[cfg(feature = "sqlite")] example::main().unwrap();
/// # }
/// ```
///
/// # Example: in the background
///
/// ```
/// # #[cfg(feature = "sqlite")] mod example {
/// # use sqlx::sqlite::SqlitePoolOptions;
/// use std::time::Duration;
///
/// use idempotent_runtime::pruner;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
/// # idempotent_runtime::migrate(&pool).await?;
/// let pruning = pruner(&pool)
///     .every(Duration::from_mins(1))
///     .on_error(|error| eprintln!("pruning: {error}"))
///     .start()?;
///
/// // … until the service shuts down
/// let pruned = pruning.stop().await;
/// println!("{} keys pruned", pruned.rows);
/// # Ok(())
/// # }
/// # }
/// # fn main() {
/// #     #[cfg(feature = "sqlite")] example::main().unwrap();
/// # }
/// ```
#[must_use = "it does nothing until `run` or `start`"]
pub struct Pruner<DB: Store> {
    pool: Pool<DB>,
    table: Table,
    batch: u32,
    pause: Duration,
    every: Duration,
    older: Vec<(String, Duration)>,
    on_progress: Option<Report<Pruned>>,
    on_error: Option<Report<Error>>,
}

type Report<T> = Arc<dyn Fn(&T) + Send + Sync>;

/// What a [`Pruner`] has done so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Pruned {
    /// Keys deleted.
    pub rows: u64,
    /// Batches that deleted any.
    pub batches: u64,
    /// Whether others were at work on rows that were due: another pruner, or
    /// transactions that had locked them. What they had may be left: to them, or
    /// to the next run.
    pub contended: bool,
}

impl Table {
    /// Prepares to prune the table: see [`Pruner`].
    pub fn pruner<DB: Store>(&self, pool: &Pool<DB>) -> Pruner<DB> {
        Pruner {
            pool: pool.clone(),
            table: self.clone(),
            batch: 1_000,
            pause: Duration::from_millis(10),
            every: Duration::from_mins(1),
            older: Vec::new(),
            on_progress: None,
            on_error: None,
        }
    }
}

/// Prepares to prune the default table: see [`Pruner`].
pub fn pruner<DB: Store>(pool: &Pool<DB>) -> Pruner<DB> {
    Table::default().pruner(pool)
}

impl<DB: Store> Pruner<DB> {
    /// How many rows one statement deletes: 1 000, unless said otherwise. A claim
    /// of one of these keys waits as long as that takes.
    pub const fn batch(mut self, rows: u32) -> Self {
        self.batch = rows;
        self
    }

    /// How long it rests between batches, to leave the disk to others: 10 ms,
    /// unless said otherwise.
    pub const fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// How long it rests [in the background](Self::start) when there is nothing
    /// left to do: a minute, unless said otherwise.
    pub const fn every(mut self, period: Duration) -> Self {
        self.every = period;
        self
    }

    /// Also deletes the rows of this scope that carry no expiry and were processed
    /// longer ago than this: those of a handler that has no `retain`, or had none
    /// then. For several scopes, and for the earlier ones of a handler with `was(…)`,
    /// call it for each.
    ///
    /// It reads all rows of the scope, in the order of the primary key.
    pub fn older_than(mut self, scope: impl Into<String>, age: Duration) -> Self {
        self.older.push((scope.into(), age));
        self
    }

    /// Calls this after each batch that deleted rows, with the counts so far: of
    /// the run, in the background of the whole task. It should return soon.
    pub fn on_progress(mut self, report: impl Fn(&Pruned) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(report));
        self
    }

    /// Calls this with each error that ends a turn [in the background](Self::start).
    /// The next turn tries again.
    pub fn on_error(mut self, report: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.on_error = Some(Arc::new(report));
        self
    }

    /// Prunes once, until no row is due any more.
    ///
    /// It ends sooner where another pruner works on the table (Postgres), and where
    /// transactions keep rows locked for seconds: see [`Pruned::contended`].
    ///
    /// # Errors
    ///
    /// A batch of 0 rows, an age or period that is not positive, a scope that is
    /// none: nothing was deleted. Else what the database answers; what was deleted
    /// before stays so. Errors that may pass ([`Error::is_retryable`]) are met with
    /// more attempts, with growing pauses, for seconds.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any point, every batch is deleted as a whole or not at all.
    pub async fn run(self) -> Result<Pruned, Error> {
        let due = self.due()?;
        let (_running, stop) = watch::channel(());
        let mut pruned = Pruned::default();
        self.turn(&due, &mut Stop(stop), &mut pruned).await?;
        Ok(pruned)
    }

    /// Prunes in a task of its own, at once and then [every](Self::every) minute,
    /// until it is stopped or dropped, or the pool is closed.
    ///
    /// # Errors
    ///
    /// A batch of 0 rows, an age or period that is not positive, a scope that is
    /// none. What goes wrong later is told to [`on_error`](Self::on_error).
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn start(self) -> Result<PrunerTask, Error> {
        let due = self.due()?;
        let (stop, stopped) = watch::channel(());
        let task = tokio::spawn(self.turns(due, Stop(stopped)));
        Ok(PrunerTask { stop, task })
    }

    /// What is to be deleted, if the options make sense.
    fn due(&self) -> Result<Vec<Due>, Error> {
        if self.batch == 0 {
            return Err(refused("a batch of 0 rows would never end"));
        }
        if self.every.is_zero() {
            return Err(refused("a period of 0 would never rest"));
        }
        let older = self.older.iter().map(|(scope, age)| {
            check_scope(scope)?;
            match i64::try_from(age.as_micros()) {
                Ok(age @ 1..=LONGEST) => Ok(Due::Older {
                    scope: scope.clone(),
                    age,
                }),
                Ok(..=0) => Err(refused(
                    "an age of 0 would delete the keys of messages still under way",
                )),
                _ => Err(refused("an age of more than 1 000 years")),
            }
        });
        std::iter::once(Ok(Due::Expired)).chain(older).collect()
    }

    async fn turns(self, due: Vec<Due>, mut stop: Stop) -> Pruned {
        let mut pruned = Pruned::default();
        loop {
            if let Err(error) = self.turn(&due, &mut stop, &mut pruned).await {
                if let Some(on_error) = &self.on_error {
                    on_error(&error);
                }
                if self.pool.is_closed() {
                    return pruned;
                }
            }
            if stop.within(self.every).await {
                return pruned;
            }
        }
    }

    /// Until nothing is due, or it is stopped.
    async fn turn(&self, due: &[Due], stop: &mut Stop, pruned: &mut Pruned) -> Result<(), Error> {
        for due in due {
            self.sweep(due, stop, pruned).await?;
        }
        Ok(())
    }

    /// Goes over the rows once, and again from the start as long as some are due
    /// there, since others had them.
    async fn sweep(&self, due: &Due, stop: &mut Stop, pruned: &mut Pruned) -> Result<(), Error> {
        let mut from = None;
        let mut patience = Patience::new();
        let mut trouble = Patience::new();
        while !stop.is_called() {
            let found = match self.step(due, from.as_deref()).await {
                Ok(found) => found,
                Err(error) if error.is_retryable() => {
                    let Some(pause) = trouble.pause() else {
                        return Err(error);
                    };
                    stop.within(pause).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            trouble = Patience::new();
            let pause = match found {
                Step::Nothing if from.is_none() => return Ok(()),
                Step::Nothing => {
                    from = None;
                    continue;
                }
                Step::Deleted {
                    rows: rows @ 1..,
                    at,
                } => {
                    from = Some(at);
                    patience = Patience::new();
                    self.count(rows, pruned);
                    self.pause
                }
                // The other one does the same.
                Step::Busy if *due == Due::Expired => {
                    pruned.contended = true;
                    return Ok(());
                }
                Step::Busy | Step::Deleted { .. } => {
                    pruned.contended = true;
                    from = None;
                    let Some(pause) = patience.pause() else {
                        return Ok(());
                    };
                    pause
                }
            };
            stop.within(pause).await;
        }
        Ok(())
    }

    /// A look, and a batch if there is anything to delete.
    async fn step(&self, due: &Due, from: Option<&str>) -> Result<Step, Error> {
        let mut session = Session::acquire(&self.pool).await?;
        let step = async {
            let conn = session.conn();
            let Some(at) = DB::look(conn, &self.table, due, from).await? else {
                return Ok(Step::Nothing);
            };
            let rows = DB::prune(conn, &self.table, due, &at, self.batch).await?;
            Ok(rows.map_or(Step::Busy, |rows| Step::Deleted { rows, at }))
        };
        let step = step.await;
        Ok(session.done(step)?)
    }

    fn count(&self, rows: u64, pruned: &mut Pruned) {
        pruned.rows += rows;
        pruned.batches += 1;
        if let Some(on_progress) = &self.on_progress {
            on_progress(pruned);
        }
    }
}

impl<DB: Store> Debug for Pruner<DB> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pruner")
            .field("table", &self.table)
            .field("batch", &self.batch)
            .field("pause", &self.pause)
            .field("every", &self.every)
            .field("older", &self.older)
            .finish_non_exhaustive()
    }
}

/// A [`Pruner`] in the background: see [`Pruner::start`].
///
/// Dropped, it stops, too, after the batch at hand.
#[derive(Debug)]
#[must_use = "dropped, it stops pruning"]
pub struct PrunerTask {
    /// Closed, it tells the task to stop.
    stop: watch::Sender<()>,
    task: JoinHandle<Pruned>,
}

impl PrunerTask {
    /// Lets the batch at hand end, and then the task; says what it has done since
    /// it was started.
    ///
    /// # Panics
    ///
    /// If a function given to [`Pruner::on_progress`] or [`Pruner::on_error`] has,
    /// with that panic.
    ///
    /// # Cancel safety
    ///
    /// Dropped before the end, the task stops all the same.
    pub async fn stop(self) -> Pruned {
        let Self { stop, task } = self;
        drop(stop);
        match task.await.map_err(JoinError::try_into_panic) {
            Ok(pruned) => pruned,
            Err(Ok(panic)) => resume_unwind(panic),
            // The runtime is shutting down.
            Err(Err(_)) => Pruned::default(),
        }
    }
}

/// What one step found and did.
enum Step {
    Nothing,
    /// Another pruner is at work.
    Busy,
    Deleted {
        rows: u64,
        at: String,
    },
}

/// Whether to stop; asked between batches only.
struct Stop(watch::Receiver<()>);

impl Stop {
    fn is_called(&self) -> bool {
        self.0.has_changed().is_err()
    }

    /// Waits; less long if it is called.
    async fn within(&mut self, pause: Duration) -> bool {
        timeout(pause, self.0.changed()).await.is_ok()
    }
}

/// A bounded number of growing pauses: seconds in all.
struct Patience {
    left: u32,
    backoff: Backoff,
}

impl Patience {
    const fn new() -> Self {
        Self {
            left: 10,
            backoff: Backoff::new(),
        }
    }

    fn pause(&mut self) -> Option<Duration> {
        self.left = self.left.checked_sub(1)?;
        Some(self.backoff.pause())
    }
}

/// In microseconds.
const LONGEST: i64 = 1_000 * 365 * 24 * 60 * 60 * 1_000_000;

fn refused(fact: &str) -> Error {
    Error::new(Cause::Argument(format!("the pruner was refused: {fact}")))
}
