use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};
use std::rc::Rc;

#[idempotent(key(id))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
    let count = Rc::new(id);
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    drop(count);
    Ok(())
}

async fn deliver(mut tx: Transaction<'static, Sqlite>) {
    let _ = handle(&mut tx, 7).await;
}

fn send(_: impl Send) {}

fn main() {
    let _ = |tx| send(deliver(tx));
}
