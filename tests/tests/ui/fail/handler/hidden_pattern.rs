use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

struct Service;

#[async_trait::async_trait]
trait Handle {
    async fn handle(
        &self,
        tx: &mut Transaction<'_, Sqlite>,
        ids: (i64, i64),
    ) -> sqlx::Result<idempotent_runtime::Outcome<()>>;
}

#[async_trait::async_trait]
impl Handle for Service {
    #[idempotent(key(a), scope = "s")]
    async fn handle(
        &self,
        tx: &mut Transaction<'_, Sqlite>,
        (a, b): (i64, i64),
    ) -> sqlx::Result<()> {
        let _ = (a, b);
        Ok(())
    }
}

#[async_trait::async_trait]
impl Handle for Msg {
    #[idempotent(key(self.id), scope = "s")]
    async fn handle(
        &self,
        tx: &mut Transaction<'_, Sqlite>,
        _: (i64, i64),
    ) -> sqlx::Result<()> {
        Ok(())
    }
}

fn main() {}
