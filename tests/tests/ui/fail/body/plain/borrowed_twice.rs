//
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
    pub channel: String,
}

//
async fn handle(tx: &mut Transaction<'_, Sqlite>, mut msg: Msg) -> sqlx::Result<()> {
    let _ = tx;
    let first = &mut msg.channel;
    let second = &mut msg.channel;
    first.push_str(second);
    Ok(())
}

fn main() {}
