//! Savepoints that sqlx counts, for Postgres and MariaDB.
//!
//! `guard = "savepoint"` must be able to roll back from `Drop`, where nothing
//! can be awaited. sqlx can queue a roll-back, but only to a savepoint of its
//! own, so the savepoint is set through its `TransactionManager`. The handler
//! keeps the very `Transaction` it was given.

use sqlx::{Connection, Database, Transaction};
use sqlx_core::transaction::TransactionManager;

use super::{Unproven, unproven};
use crate::error::Lost;

/// The depth that sqlx counts inside the savepoint.
#[derive(Debug)]
pub struct Depth(usize);

impl Depth {
    pub(super) fn of<DB: Database>(tx: &Transaction<'_, DB>) -> Self {
        Self(DB::TransactionManager::get_transaction_depth(tx))
    }
}

/// Releases the savepoint. `is_gone` recognises the database's "no such
/// savepoint" and "transaction is aborted".
pub(super) async fn release<DB: Database>(
    tx: &mut Transaction<'_, DB>,
    savepoint: &Depth,
    lost: impl Fn(&sqlx::Error) -> Option<Lost> + Send,
) -> Result<(), Unproven> {
    // A nested `begin` of the handler's, dropped before it was done, makes
    // sqlx roll back to our savepoint: a release would then hit the caller's
    // transaction.
    if Depth::of(tx).0 != savepoint.0 {
        return Err(Unproven::Lost(Lost::RolledBack));
    }
    let Err(error) = DB::TransactionManager::commit(tx).await else {
        return Ok(());
    };
    discard(tx, savepoint).await;
    Err(unproven(error, lost))
}

/// Rolls back to the savepoint, unless that happened already.
pub(super) async fn roll_back<DB: Database>(
    tx: &mut Transaction<'_, DB>,
    savepoint: &Depth,
    lost: impl Fn(&sqlx::Error) -> Option<Lost> + Send,
) -> Result<(), Unproven> {
    while Depth::of(tx).0 >= savepoint.0 {
        if let Err(error) = DB::TransactionManager::rollback(tx).await {
            discard(tx, savepoint).await;
            return Err(unproven(error, lost));
        }
    }
    Ok(())
}

/// Takes a savepoint that is gone off sqlx's count. The roll-back that this
/// queues fails; the ping takes its error, which would otherwise meet the
/// caller's next statement.
async fn discard<DB: Database>(tx: &mut Transaction<'_, DB>, savepoint: &Depth) {
    cut(tx, savepoint);
    let _ = tx.ping().await;
}

/// Queues the roll-back, and takes the savepoint off sqlx's count in any case:
/// a connection that goes back to its pool with a wrong count would open
/// savepoints where it should begin.
pub(super) fn cut<DB: Database>(tx: &mut Transaction<'_, DB>, savepoint: &Depth) {
    while Depth::of(tx).0 >= savepoint.0 {
        DB::TransactionManager::start_rollback(tx);
    }
}
