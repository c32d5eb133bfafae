//! The two guards as types, so that a test is written once for both.

use idempotent_runtime::{Error, Outcome, idempotent};
use sqlx::Transaction;

use crate::double::Double;
use crate::engine::Engine;

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

/// A guard: the handlers that have it.
pub trait Guarded: Send + Sync + 'static {
    /// The scope of [`record`](Self::record) and [`deliver`](Self::deliver).
    const SCOPE: &'static str;

    /// Does the work of the double.
    fn record<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        double: &Double,
    ) -> impl Future<Output = Result<Outcome<()>, AppError>> + Send;

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

impl Guarded for Verify {
    const SCOPE: &'static str = "verified";

    #[idempotent(key(id), skip(double), scope = "verified")]
    async fn record<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        double: &Double,
    ) -> Result<(), AppError> {
        double.run(tx, id).await
    }

    #[idempotent(key(id), skip(body), scope = "verified")]
    async fn deliver<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        body: impl AsyncFnOnce(&mut Transaction<'_, DB>) -> Result<(), AppError>,
    ) -> Result<(), AppError> {
        body(tx).await
    }
}

impl Guarded for Savepoint {
    const SCOPE: &'static str = "saved";

    #[idempotent(key(id), skip(double), scope = "saved", guard = "savepoint")]
    async fn record<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        double: &Double,
    ) -> Result<(), AppError> {
        double.run(tx, id).await
    }

    #[idempotent(key(id), skip(body), scope = "saved", guard = "savepoint")]
    async fn deliver<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        body: impl AsyncFnOnce(&mut Transaction<'_, DB>) -> Result<(), AppError>,
    ) -> Result<(), AppError> {
        body(tx).await
    }
}
