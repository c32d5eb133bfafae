use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(stable(msg.names().map(|channel| channel.len()))), scope = "s")]
async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: &Msg, channel: &str) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
