//! The two guards as types, and `replay` under each, so that a test is written once for all.

use idempotent_runtime::{Error, Outcome, Replay, idempotent, transact};
use sqlx::{Pool, Transaction};

use crate::double::Double;
use crate::engine::{Engine, Statement};

/// The error of the handlers under test.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// Ours.
    #[error(transparent)]
    Idempotent(#[from] Error),
    /// A statement of the handler's own failed.
    #[error("the handler's statement failed")]
    Database(#[from] sqlx::Error),
    /// A business refusal.
    #[error("refused")]
    Refused,
}

impl AppError {
    /// Says whether the transaction was lost.
    #[must_use]
    pub const fn is_transaction_lost(&self) -> bool {
        matches!(self, Self::Idempotent(error) if error.is_transaction_lost())
    }

    /// Says whether a retry of the whole transaction may help, as a consumer
    /// without `transact!` would find out.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Idempotent(error) => error.is_retryable(),
            Self::Database(_) | Self::Refused => false,
        }
    }
}

/// A handler that does the work of a double.
pub trait Recorder: Send + Sync + 'static {
    /// Does the work of the double.
    fn record<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        double: &Double,
    ) -> impl Future<Output = Result<Outcome<()>, AppError>> + Send;

    /// Returns the run whose value a duplicate is given, where one is stored.
    #[must_use]
    fn recalled<DB: Engine>(
        pool: &Pool<DB>,
        id: &str,
    ) -> impl Future<Output = Option<usize>> + Send {
        let _ = (pool, id);
        std::future::ready(None)
    }
}

/// A guard: the handlers that have it.
pub trait Guarded: Recorder {
    /// The scope of [`record`](Recorder::record) and [`deliver`](Self::deliver).
    const SCOPE: &'static str;

    /// Runs any body. In the scope of `record`.
    fn deliver<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        body: impl AsyncFnOnce(&mut Transaction<'_, DB>) -> Result<(), AppError>,
    ) -> impl Future<Output = Result<Outcome<()>, AppError>>;
}

/// `guard = "verify"`.
#[derive(Debug)]
pub struct Verify;

/// `guard = "savepoint"`.
#[derive(Debug)]
pub struct Savepoint;

/// `replay` with everything that is stored beside the key, under `verify`.
#[derive(Debug)]
pub struct Replayed;

/// The same under `savepoint`.
#[derive(Debug)]
pub struct ReplayedUnderSavepoint;

/// A body that prepares a statement too, under `verify`.
#[derive(Debug)]
pub struct Preparing;

/// The same under `savepoint`.
#[derive(Debug)]
pub struct PreparingUnderSavepoint;

impl Recorder for Verify {
    #[idempotent(key(id), skip(double), scope = "verified")]
    async fn record<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        double: &Double,
    ) -> Result<(), AppError> {
        double.run(tx, id).await
    }
}

impl Guarded for Verify {
    const SCOPE: &'static str = "verified";

    #[idempotent(key(id), skip(body), scope = "verified")]
    async fn deliver<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        body: impl AsyncFnOnce(&mut Transaction<'_, DB>) -> Result<(), AppError>,
    ) -> Result<(), AppError> {
        body(tx).await
    }
}

impl Recorder for Savepoint {
    #[idempotent(key(id), skip(double), scope = "saved", guard = "savepoint")]
    async fn record<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        double: &Double,
    ) -> Result<(), AppError> {
        double.run(tx, id).await
    }
}

impl Guarded for Savepoint {
    const SCOPE: &'static str = "saved";

    #[idempotent(key(id), skip(body), scope = "saved", guard = "savepoint")]
    async fn deliver<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        body: impl AsyncFnOnce(&mut Transaction<'_, DB>) -> Result<(), AppError>,
    ) -> Result<(), AppError> {
        body(tx).await
    }
}

impl Recorder for Replayed {
    async fn record<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        double: &Double,
    ) -> Result<Outcome<()>, AppError> {
        Ok(without_value(id, replayed(tx, id, double).await?))
    }

    async fn recalled<DB: Engine>(pool: &Pool<DB>, id: &str) -> Option<usize> {
        let double = Double::new();
        let replay = transact!(pool, tx => replayed(tx, id, &double)).await;
        Some(run_of_duplicate(replay, &double))
    }
}

impl Recorder for ReplayedUnderSavepoint {
    async fn record<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        double: &Double,
    ) -> Result<Outcome<()>, AppError> {
        let replay = replayed_under_savepoint(tx, id, double).await?;
        Ok(without_value(id, replay))
    }

    async fn recalled<DB: Engine>(pool: &Pool<DB>, id: &str) -> Option<usize> {
        let double = Double::new();
        let replay = transact!(pool, tx => replayed_under_savepoint(tx, id, &double)).await;
        Some(run_of_duplicate(replay, &double))
    }
}

impl Recorder for Preparing {
    #[idempotent(key(id), skip(double), scope = "preparing")]
    async fn record<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        double: &Double,
    ) -> Result<(), AppError> {
        DB::write(tx, &beside(id), Statement::New).await?;
        double.run(tx, id).await
    }
}

impl Recorder for PreparingUnderSavepoint {
    #[idempotent(
        key(id),
        skip(double),
        scope = "preparing_under_savepoint",
        guard = "savepoint"
    )]
    async fn record<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        double: &Double,
    ) -> Result<(), AppError> {
        DB::write(tx, &beside(id), Statement::New).await?;
        double.run(tx, id).await
    }
}

/// The name of a row that nobody counts.
fn beside(id: &str) -> String {
    format!("beside {id}")
}

#[idempotent(
    key(id),
    skip(double),
    scope = "replayed",
    replay,
    fingerprint(stable(id.len())),
    retain = "1 hour"
)]
async fn replayed<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
) -> Result<Value, AppError> {
    double.run(tx, id).await?;
    Ok((id.to_owned(), double.runs()))
}

#[idempotent(
    key(id),
    skip(double),
    scope = "replayed_under_savepoint",
    replay,
    fingerprint(stable(id.len())),
    retain = "1 hour",
    guard = "savepoint"
)]
async fn replayed_under_savepoint<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
) -> Result<Value, AppError> {
    double.run(tx, id).await?;
    Ok((id.to_owned(), double.runs()))
}

/// The message, and the run that it is of.
type Value = (String, usize);

/// Whether it ran or not, the value is that of the message.
fn without_value(id: &str, replay: Replay<Value>) -> Outcome<()> {
    let outcome = match &replay {
        Replay::Processed(_) => Outcome::Processed(()),
        Replay::Replayed(_) => Outcome::Duplicate,
    };
    assert_eq!(replay.into_inner().0, id);
    outcome
}

fn run_of_duplicate(replay: Result<Replay<Value>, AppError>, double: &Double) -> usize {
    match replay {
        Ok(Replay::Replayed((_, run))) if double.runs() == 0 => run,
        said => panic!("no duplicate: {said:?}"),
    }
}
