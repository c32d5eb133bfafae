use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(msg.id))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    let _ = (tx, msg);
    let _ = msg.;
    Ok(())
}

fn main() {}
