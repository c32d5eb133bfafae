use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

impl Msg {
    #[idempotent(key(id), skip(self), scope = "method")]
    async fn handle(&self, tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
        Ok(())
    }
}

fn main() {}
