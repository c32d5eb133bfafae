use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(msg.id), skip(mailr, config))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: &Msg, mailer: &str) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
