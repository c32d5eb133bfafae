use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(part))]
async fn single(tx: &mut Transaction<'_, Sqlite>, part: f32) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(part))]
async fn double(tx: &mut Transaction<'_, Sqlite>, part: &f64) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(part))]
async fn nested(tx: &mut Transaction<'_, Sqlite>, part: (u64, f64)) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(nullable(part)))]
async fn optional(tx: &mut Transaction<'_, Sqlite>, part: Option<f64>) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
