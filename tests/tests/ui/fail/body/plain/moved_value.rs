//
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
    pub channel: String,
}

//
async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: Msg) -> sqlx::Result<String> {
    let _ = tx;
    drop(msg);
    Ok(msg.channel)
}

fn main() {}
