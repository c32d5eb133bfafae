use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
    pub sent_at: i64,
    pub attempt: u8,
    pub delivery_tag: u64,
    pub trace_id: String,
    pub nonce: u32,
}

#[idempotent(key(
    msg.sent_at,
    msg.attempt,
    msg.delivery_tag,
    msg.trace_id.as_str(),
    msg.nonce,
    msg.id
))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key = "timestamp")]
async fn quoted(tx: &mut Transaction<'_, Sqlite>, timestamp: i64) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
