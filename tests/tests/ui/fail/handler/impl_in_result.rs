use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(msg.id))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<impl Sized> {
    let _ = (tx, msg);
    Ok(())
}

async fn caller(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<bool> {
    Ok(handle(tx, msg).await?.processed().is_some())
}

fn main() {
    let _ = caller;
}
