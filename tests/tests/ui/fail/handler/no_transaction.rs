use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(msg.id))]
async fn handle(msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id))]
async fn alias(db: &mut Tx<'_>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

type Tx<'c> = Transaction<'c, Sqlite>;

fn main() {}
