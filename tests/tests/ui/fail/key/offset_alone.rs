use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Record {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
}

#[idempotent(key(record.topic, record.offset))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, record: &Record) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
