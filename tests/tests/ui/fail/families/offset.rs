use idempotent_runtime::idempotent;
use sqlx::{Postgres, Transaction};

pub struct Record {
    pub partition: i32,
    pub offset: i64,
}

#[idempotent(key(record.offset))]
async fn credit(tx: &mut Transaction<'_, Postgres>, record: &Record) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
