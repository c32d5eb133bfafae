use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(part))]
async fn system_time(
    tx: &mut Transaction<'_, Sqlite>,
    part: std::time::SystemTime,
) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(part))]
async fn date_time(
    tx: &mut Transaction<'_, Sqlite>,
    part: chrono::DateTime<chrono::Utc>,
) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(part))]
async fn offset(tx: &mut Transaction<'_, Sqlite>, part: time::OffsetDateTime) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(part))]
async fn naive(tx: &mut Transaction<'_, Sqlite>, part: chrono::NaiveDateTime) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(part))]
async fn primitive(
    tx: &mut Transaction<'_, Sqlite>,
    part: time::PrimitiveDateTime,
) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(part))]
async fn nested(
    tx: &mut Transaction<'_, Sqlite>,
    part: (u64, &std::time::SystemTime),
) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
