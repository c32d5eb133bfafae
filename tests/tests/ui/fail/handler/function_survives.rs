use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(mgs.id), bind = claim)]
async fn wrong_key(tx: &mut Transaction<'_, Sqlite>, mut msg: Msg) -> sqlx::Result<i64> {
    msg.id += i64::try_from(claim.key().len()).unwrap_or_default();
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    Ok(msg.id)
}

#[idempotent(key(msg.))]
async fn half_typed_key(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<i64> {
    Ok(msg.id)
}

#[idempotent(kye(msg.id))]
async fn wrong_argument(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> Answer {
    Ok(msg.id)
}

type Answer = sqlx::Result<i64>;

async fn caller(tx: &mut Transaction<'_, Sqlite>) -> sqlx::Result<Option<i64>> {
    let sum = wrong_key(tx, Msg { id: 1 }).await?.processed().unwrap_or(1)
        + half_typed_key(tx, &Msg { id: 1 }).await?.processed().unwrap_or(1);
    Ok(wrong_argument(tx, &Msg { id: sum }).await?.processed())
}

fn main() {
    let _ = caller;
}
