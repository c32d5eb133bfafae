//! One message, handled in every way that there is.

use idempotent_runtime::{Error, ManyWriters, Outcome, Replay, Verdict, idempotent};
use idempotent_tests::{Engine, Statement};
use sqlx::Transaction;

/// The guard and the options of a handler.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// `guard = "verify"`.
    Verify,
    /// `guard = "savepoint"`.
    Savepoint,
    /// `replay`.
    Replay,
    /// The same under `savepoint`.
    ReplayUnderSavepoint,
    /// With an earlier name.
    Renamed,
    /// `busy = "fail"`.
    Busy,
    /// A batch of this message alone.
    Batch,
    /// The same under `savepoint`.
    BatchUnderSavepoint,
}

impl Way {
    /// Every one.
    pub const ALL: [Self; 8] = [
        Self::Verify,
        Self::Savepoint,
        Self::Replay,
        Self::ReplayUnderSavepoint,
        Self::Renamed,
        Self::Busy,
        Self::Batch,
        Self::BatchUnderSavepoint,
    ];

    /// Handles a message.
    ///
    /// # Errors
    ///
    /// The database's, or ours.
    ///
    /// # Panics
    ///
    /// If the value that is given back is not that of the message.
    pub async fn handle<DB: Engine + ManyWriters>(
        self,
        tx: &mut Transaction<'_, DB>,
        id: &str,
    ) -> Result<Outcome<()>, Error> {
        match self {
            Self::Verify => verify(tx, id).await,
            Self::Savepoint => savepoint(tx, id).await,
            Self::Replay => Ok(without_value(id, replay(tx, id).await?)),
            Self::ReplayUnderSavepoint => {
                Ok(without_value(id, replay_under_savepoint(tx, id).await?))
            }
            Self::Renamed => renamed(tx, id).await,
            Self::Busy => busy(tx, id).await,
            Self::Batch => Ok(of_one(&batch(tx, vec![id.to_owned()]).await?.outcomes)),
            Self::BatchUnderSavepoint => {
                let batch = batch_under_savepoint(tx, vec![id.to_owned()]).await?;
                Ok(of_one(&batch.outcomes))
            }
        }
    }
}

/// The effect of a message as nobody guards it.
///
/// # Errors
///
/// The database's.
pub async fn without_a_key<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
) -> Result<(), Error> {
    for statement in [Statement::Text, Statement::Cached, Statement::New] {
        DB::write(tx, id, statement).await?;
    }
    Ok(())
}

#[idempotent(key(id), scope = "verify")]
async fn verify<DB: Engine>(tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), Error> {
    without_a_key(tx, id).await
}

#[idempotent(key(id), scope = "savepoint", guard = "savepoint")]
async fn savepoint<DB: Engine>(tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), Error> {
    without_a_key(tx, id).await
}

#[idempotent(key(id), scope = "replay", replay, fingerprint(stable(id.len())))]
async fn replay<DB: Engine>(tx: &mut Transaction<'_, DB>, id: &str) -> Result<String, Error> {
    without_a_key(tx, id).await?;
    Ok(id.to_owned())
}

#[idempotent(
    key(id),
    scope = "replay_under_savepoint",
    replay,
    fingerprint(stable(id.len())),
    guard = "savepoint"
)]
async fn replay_under_savepoint<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
) -> Result<String, Error> {
    without_a_key(tx, id).await?;
    Ok(id.to_owned())
}

#[idempotent(key(id), scope = "renamed", was("a_name_of_before"))]
async fn renamed<DB: Engine>(tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), Error> {
    without_a_key(tx, id).await
}

#[idempotent(key(id), scope = "busy", busy = "fail")]
async fn busy<DB: Engine + ManyWriters>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
) -> Result<(), Error> {
    without_a_key(tx, id).await
}

#[idempotent(key(id), each = "id in ids", scope = "batch")]
async fn batch<DB: Engine>(tx: &mut Transaction<'_, DB>, ids: Vec<String>) -> Result<(), Error> {
    for id in ids {
        without_a_key(tx, &id).await?;
    }
    Ok(())
}

#[idempotent(
    key(id),
    each = "id in ids",
    scope = "batch_under_savepoint",
    guard = "savepoint"
)]
async fn batch_under_savepoint<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    ids: Vec<String>,
) -> Result<(), Error> {
    for id in ids {
        without_a_key(tx, &id).await?;
    }
    Ok(())
}

fn without_value(id: &str, replay: Replay<String>) -> Outcome<()> {
    let outcome = if replay.is_replayed() {
        Outcome::Duplicate
    } else {
        Outcome::Processed(())
    };
    assert_eq!(replay.into_inner(), id);
    outcome
}

fn of_one(outcomes: &[Verdict]) -> Outcome<()> {
    match outcomes {
        [Verdict::Processed] => Outcome::Processed(()),
        [Verdict::Duplicate] => Outcome::Duplicate,
        _ => panic!("{outcomes:?}"),
    }
}
