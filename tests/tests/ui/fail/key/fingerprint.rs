use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};
use std::time::SystemTime;

pub struct Msg {
    pub id: i64,
    pub sent_at: i64,
    pub booked: SystemTime,
}

#[idempotent(key(msg.id), fingerprint(mgs.amount, msg.sent_at, now(), msg.id + 1, tx))]
async fn several(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id), fingerprint = "msg.booked")]
async fn by_type(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id), fingerprint("msg.booked"))]
async fn quoted(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
