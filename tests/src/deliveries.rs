//! Every kind of handler, alike, so that what is tried on one is tried on all.

use idempotent_runtime::{Batch, ManyWriters, Outcome, idempotent};
use sqlx::{Pool, Transaction};

use crate::double::Double;
use crate::engine::Engine;
use crate::guarded::{AppError, Recorder};

/// A handler that does the work of a double, for one message or for several.
pub trait Delivery<DB: Engine>: Send + Sync + 'static {
    /// What may be known of the messages of one call.
    const KNOWN: &'static [Known] = &[Known::Nothing, Known::All];
    /// How many keys a message has.
    const KEYS: i64 = 1;
    /// How many of them [`process_earlier`](Self::process_earlier) stores.
    const EARLIER_KEYS: i64 = Self::KEYS;

    /// The messages of one call, by a name for all of them.
    #[must_use]
    fn ids(name: &str) -> Vec<String> {
        vec![name.to_owned()]
    }

    /// Processes messages in one call.
    fn process(
        tx: &mut Transaction<'_, DB>,
        ids: &[String],
        double: &Double,
    ) -> impl Future<Output = Result<Outcome<()>, AppError>> + Send;

    /// Processes them as an earlier delivery did.
    fn process_earlier(
        tx: &mut Transaction<'_, DB>,
        ids: &[String],
        double: &Double,
    ) -> impl Future<Output = Result<Outcome<()>, AppError>> + Send {
        Self::process(tx, ids, double)
    }

    /// Returns the run whose value a duplicate is given, where one is stored.
    #[must_use]
    fn recalled(pool: &Pool<DB>, id: &str) -> impl Future<Output = Option<usize>> + Send {
        let _ = (pool, id);
        std::future::ready(None)
    }
}

/// Which messages of a call were processed before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Known {
    /// None.
    Nothing,
    /// The first half.
    Half,
    /// All.
    All,
}

impl Known {
    /// Those messages.
    #[must_use]
    pub fn of(self, ids: &[String]) -> &[String] {
        match self {
            Self::Nothing => &[],
            Self::Half => &ids[..ids.len() / 2],
            Self::All => ids,
        }
    }
}

impl<DB: Engine, R: Recorder> Delivery<DB> for R {
    async fn process(
        tx: &mut Transaction<'_, DB>,
        ids: &[String],
        double: &Double,
    ) -> Result<Outcome<()>, AppError> {
        Self::record(tx, only(ids), double).await
    }

    async fn recalled(pool: &Pool<DB>, id: &str) -> Option<usize> {
        <Self as Recorder>::recalled(pool, id).await
    }
}

/// The message of a handler that takes one.
fn only(ids: &[String]) -> &str {
    let [id] = ids else {
        panic!("one message, not {}", ids.len());
    };
    id
}

/// `each`, under `verify`.
#[derive(Debug)]
pub struct Batched;

/// `each`, under `savepoint`.
#[derive(Debug)]
pub struct BatchedUnderSavepoint;

impl<DB: Engine> Delivery<DB> for Batched {
    const KNOWN: &'static [Known] = &[Known::Nothing, Known::Half, Known::All];

    fn ids(name: &str) -> Vec<String> {
        batch_of(name)
    }

    async fn process(
        tx: &mut Transaction<'_, DB>,
        ids: &[String],
        double: &Double,
    ) -> Result<Outcome<()>, AppError> {
        let batch = batched(tx, ids.to_vec(), double).await?;
        Ok(as_one(&batch))
    }
}

impl<DB: Engine> Delivery<DB> for BatchedUnderSavepoint {
    const KNOWN: &'static [Known] = &[Known::Nothing, Known::Half, Known::All];

    fn ids(name: &str) -> Vec<String> {
        batch_of(name)
    }

    async fn process(
        tx: &mut Transaction<'_, DB>,
        ids: &[String],
        double: &Double,
    ) -> Result<Outcome<()>, AppError> {
        let batch = batched_under_savepoint(tx, ids.to_vec(), double).await?;
        Ok(as_one(&batch))
    }
}

#[idempotent(key(id), each = "id in ids", skip(double), scope = "batched")]
async fn batched<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    ids: Vec<String>,
    double: &Double,
) -> Result<(), AppError> {
    run_each(tx, &ids, double).await
}

#[idempotent(
    key(id),
    each = "id in ids",
    skip(double),
    scope = "batched_under_savepoint",
    guard = "savepoint"
)]
async fn batched_under_savepoint<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    ids: Vec<String>,
    double: &Double,
) -> Result<(), AppError> {
    run_each(tx, &ids, double).await
}

async fn run_each<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    ids: &[String],
    double: &Double,
) -> Result<(), AppError> {
    for id in ids {
        double.run(tx, id).await?;
    }
    Ok(())
}

fn batch_of(name: &str) -> Vec<String> {
    let messages = if crate::is_full() { 20 } else { 3 };
    (1..=messages).map(|n| format!("{name}-{n}")).collect()
}

/// A batch is a duplicate if all its messages are.
fn as_one(batch: &Batch<()>) -> Outcome<()> {
    match batch.value {
        Some(()) => Outcome::Processed(()),
        None => Outcome::Duplicate,
    }
}

/// `was`, under `verify`; it was processed under the earlier name.
#[derive(Debug)]
pub struct Renamed;

/// The same under `savepoint`.
#[derive(Debug)]
pub struct RenamedUnderSavepoint;

impl<DB: Engine> Delivery<DB> for Renamed {
    const KEYS: i64 = 2;
    const EARLIER_KEYS: i64 = 1;

    async fn process(
        tx: &mut Transaction<'_, DB>,
        ids: &[String],
        double: &Double,
    ) -> Result<Outcome<()>, AppError> {
        renamed(tx, only(ids), double).await
    }

    async fn process_earlier(
        tx: &mut Transaction<'_, DB>,
        ids: &[String],
        double: &Double,
    ) -> Result<Outcome<()>, AppError> {
        named_before(tx, only(ids), double).await
    }
}

impl<DB: Engine> Delivery<DB> for RenamedUnderSavepoint {
    const KEYS: i64 = 2;
    const EARLIER_KEYS: i64 = 1;

    async fn process(
        tx: &mut Transaction<'_, DB>,
        ids: &[String],
        double: &Double,
    ) -> Result<Outcome<()>, AppError> {
        renamed_under_savepoint(tx, only(ids), double).await
    }

    async fn process_earlier(
        tx: &mut Transaction<'_, DB>,
        ids: &[String],
        double: &Double,
    ) -> Result<Outcome<()>, AppError> {
        named_before(tx, only(ids), double).await
    }
}

#[idempotent(key(id), skip(double), scope = "named_before")]
async fn named_before<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await
}

#[idempotent(key(id), skip(double), scope = "renamed", was("named_before"))]
async fn renamed<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await
}

#[idempotent(
    key(id),
    skip(double),
    scope = "renamed_under_savepoint",
    was("named_before"),
    guard = "savepoint"
)]
async fn renamed_under_savepoint<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await
}

/// `busy = "fail"`, under `verify`.
#[derive(Debug)]
pub struct Busy;

/// `busy = "fail"`, under `savepoint`.
#[derive(Debug)]
pub struct BusyUnderSavepoint;

impl<DB: Engine + ManyWriters> Delivery<DB> for Busy {
    async fn process(
        tx: &mut Transaction<'_, DB>,
        ids: &[String],
        double: &Double,
    ) -> Result<Outcome<()>, AppError> {
        busy(tx, only(ids), double).await
    }
}

impl<DB: Engine + ManyWriters> Delivery<DB> for BusyUnderSavepoint {
    async fn process(
        tx: &mut Transaction<'_, DB>,
        ids: &[String],
        double: &Double,
    ) -> Result<Outcome<()>, AppError> {
        busy_under_savepoint(tx, only(ids), double).await
    }
}

#[idempotent(key(id), skip(double), scope = "busy", busy = "fail")]
async fn busy<DB: Engine + ManyWriters>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await
}

#[idempotent(
    key(id),
    skip(double),
    scope = "busy_under_savepoint",
    busy = "fail",
    guard = "savepoint"
)]
async fn busy_under_savepoint<DB: Engine + ManyWriters>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await
}
