use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(msg.id))]
fn handle(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.id))]
const fn constant(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.id))]
extern "C" fn foreign(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.id))]
fn by_hand(tx: &mut Transaction<'_, Sqlite>, msg: Msg) -> impl Future<Output = sqlx::Result<()>> {
    let _ = (tx, msg);
    async { Ok(()) }
}

type Answer = sqlx::Result<()>;

#[idempotent(key(msg.id))]
fn alias(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> Answer {
    let _ = (tx, msg);
    Ok(())
}

async fn caller(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<Option<()>> {
    let done = handle(tx, msg).await?.processed();
    let done = done.and(alias(tx, msg).await?.processed());
    Ok(done.and(constant(tx, msg).await?.processed()))
}

fn main() {
    let _ = caller;
}
