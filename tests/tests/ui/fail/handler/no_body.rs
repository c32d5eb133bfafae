use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

pub trait Handle {
    #[idempotent(key(msg.id), scope = "handle")]
    async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()>;
}

async fn caller<H: Handle>(
    tx: &mut Transaction<'_, Sqlite>,
    msg: &Msg,
) -> sqlx::Result<Option<()>> {
    Ok(H::handle(tx, msg).await?.processed())
}

fn main() {}
