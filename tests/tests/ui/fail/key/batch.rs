use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(tenant), each = "msg in msgs")]
async fn without_element(
    tx: &mut Transaction<'_, Sqlite>,
    tenant: i64,
    msgs: Vec<Msg>,
) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msgs), each = "msg in msgs")]
async fn whole(tx: &mut Transaction<'_, Sqlite>, msgs: Vec<Msg>) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id), each = "msg in msgs")]
async fn slice(tx: &mut Transaction<'_, Sqlite>, msgs: &[Msg]) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msgs.id), each = "msgs in msgs")]
async fn one_name(tx: &mut Transaction<'_, Sqlite>, msgs: Vec<Msg>) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id), each = "msg in msgs")]
async fn channel(tx: &mut Transaction<'_, Sqlite>, msgs: Vec<Msg>, channel: u8) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
