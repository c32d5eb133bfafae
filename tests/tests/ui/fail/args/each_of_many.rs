use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(
    key(msg.id),
    each = "msg in msgs",
    replay,
    fingerprint(msg.id),
    busy = "fail",
    bind = claim
)]
async fn excluded(tx: &mut Transaction<'_, Sqlite>, msgs: Vec<Msg>) -> sqlx::Result<i64> {
    let _ = (claim.key(), msgs);
    Ok(1)
}

#[idempotent(key(msg.id), each = "msg of msgs")]
async fn not_in(tx: &mut Transaction<'_, Sqlite>, msgs: Vec<Msg>) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id), each = "msg in mgss")]
async fn unknown(tx: &mut Transaction<'_, Sqlite>, msgs: Vec<Msg>) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
