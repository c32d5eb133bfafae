use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(msg.id))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) {
    let _ = (tx, msg);
}

#[idempotent(key(msg.id))]
async fn option(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> Option<i64> {
    let _ = tx;
    Some(msg.id)
}

#[idempotent(key(msg.id))]
async fn number(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> (i64, i64) {
    let _ = tx;
    (msg.id, 1)
}

async fn caller(
    tx: &mut Transaction<'_, Sqlite>,
    msg: &Msg,
) -> Result<Option<i64>, idempotent_runtime::Error> {
    handle(tx, msg).await?.processed();
    Ok(number(tx, msg).await?.map(|pair| pair.0).processed())
}

fn main() {
    let _ = caller;
}
