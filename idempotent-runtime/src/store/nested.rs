//! Savepoints that sqlx counts, for Postgres and MariaDB.
//!
//! `guard = "savepoint"` must be able to roll back from `Drop`, where nothing
//! can be awaited. sqlx can queue a roll-back, but only to a savepoint of its
//! own, so the savepoint is set through its `TransactionManager`. The handler
//! keeps the very `Transaction` it was given.

use std::fmt::{self, Display, Formatter};

use sqlx::{AssertSqlSafe, Connection, Database, Executor, Transaction};
use sqlx_core::transaction::TransactionManager;

/// The savepoint, by the number of levels that sqlx counts inside it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Depth(usize);

impl Depth {
    pub(super) fn of<DB: Database>(tx: &Transaction<'_, DB>) -> Self {
        Self(DB::TransactionManager::get_transaction_depth(tx))
    }
}

/// The name that sqlx gives it.
impl Display for Depth {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "_sqlx_savepoint_{}", self.0.saturating_sub(1))
    }
}

/// What ends a savepoint whose work stays: the statements that go with the
/// proof, in its round trip.
///
/// The savepoint is set again, empty. The roll-back to it, with which [`pop`]
/// (or [`cut`], if the future is dropped meanwhile) takes it off sqlx's count,
/// then finds it wherever the cut falls: before the release, it undoes the work;
/// after it, nothing.
pub(super) fn release(savepoint: Depth) -> String {
    format!("RELEASE SAVEPOINT {savepoint}; SAVEPOINT {savepoint}")
}

/// Takes an emptied savepoint off sqlx's count. The roll-back to it goes with
/// the connection's next statement.
pub(super) fn pop<DB: Database>(tx: &mut Transaction<'_, DB>) {
    DB::TransactionManager::start_rollback(tx);
}

/// Rolls back to the savepoint, wherever sqlx's count stands.
pub(super) async fn roll_back<DB: Database>(
    tx: &mut Transaction<'_, DB>,
    savepoint: Depth,
) -> Result<(), sqlx::Error>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    if is_popped(tx, savepoint) {
        let rest = AssertSqlSafe(format!("ROLLBACK TO SAVEPOINT {savepoint}"));
        return (&mut **tx).execute(rest).await.map(drop);
    }
    while Depth::of(tx).0 > savepoint.0 {
        pop(tx); // a nested transaction that the handler has leaked
    }
    let rolled_back = DB::TransactionManager::rollback(tx).await;
    if rolled_back.is_err() {
        discard(tx, savepoint).await;
    }
    rolled_back
}

/// Takes a savepoint that is gone off sqlx's count. The roll-back that this
/// queues fails; the ping takes its error, which would otherwise meet the
/// caller's next statement.
pub(super) async fn discard<DB: Database>(tx: &mut Transaction<'_, DB>, savepoint: Depth) {
    cut(tx, savepoint);
    let _ = tx.ping().await;
}

/// Queues the roll-back to the savepoint, and takes it off sqlx's count in any
/// case: a connection that goes back to its pool with a wrong count would open
/// savepoints where it should begin.
pub(super) fn cut<DB: Database>(tx: &mut Transaction<'_, DB>, savepoint: Depth) {
    while Depth::of(tx).0 >= savepoint.0 {
        pop(tx);
    }
}

/// Says whether a nested `begin` of the handler's, dropped before it was done,
/// has made sqlx roll back to the savepoint and take it off its count. It still
/// stands on the server, and what the handler wrote since stands in it.
pub(super) fn is_popped<DB: Database>(tx: &Transaction<'_, DB>, savepoint: Depth) -> bool {
    Depth::of(tx).0 < savepoint.0
}
