use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
    pub channel: String,
}

#[idempotent(key(msg.id))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: Msg) -> sqlx::Result<usize> {
    let _ = tx;
    let channel = &msg.channel;
    drop(msg);
    Ok(channel.len())
}

fn main() {}
