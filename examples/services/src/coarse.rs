//! The mistake to compare with: a key without the channel.

use idempotent_runtime::{Verdict, idempotent};
use sqlx::{PgPool, Postgres, Transaction};

use crate::notify::{self, Channel, Notice, TransferCompleted};

/// As [`notify::notify`], but for the key. It compiles: the channel is a field of the message. A
/// parameter that the key leaves out would be an error.
#[idempotent(
    key(notice.event.id),
    each = "notice in notices",
    scope = "notify.coarse"
)]
async fn notify(tx: &mut Transaction<'_, Postgres>, notices: Vec<Notice>) -> sqlx::Result<()> {
    notify::store(tx, &notices).await
}

/// Tries what that key does to the notices of one event, and keeps nothing of it.
///
/// # Errors
///
/// Those of the database.
pub async fn rehearse(pool: &PgPool) -> sqlx::Result<Vec<(Channel, Verdict)>> {
    let event = TransferCompleted {
        id: "rehearsal".to_owned(),
        ..TransferCompleted::sample(1)
    };
    let notices = Channel::ALL.map(|channel| Notice {
        event: event.clone(),
        channel,
    });
    let mut tx = pool.begin().await?;
    let batch = notify(&mut tx, notices.to_vec()).await?;
    tx.rollback().await?;
    Ok(Channel::ALL.into_iter().zip(batch.outcomes).collect())
}
