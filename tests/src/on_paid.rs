//! A handler in a crate of its own, with the name that another crate's has.

use std::sync::atomic::{AtomicUsize, Ordering};

use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

/// Counts its runs.
///
/// # Errors
///
/// The database's.
#[idempotent(key(id), skip(runs))]
pub async fn on_paid(
    tx: &mut Transaction<'_, Sqlite>,
    id: i64,
    runs: &AtomicUsize,
) -> sqlx::Result<()> {
    let _ = tx;
    runs.fetch_add(1, Ordering::SeqCst);
    Ok(())
}
