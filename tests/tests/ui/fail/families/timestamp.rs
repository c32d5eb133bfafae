use chrono::{DateTime, Utc};
use idempotent_runtime::idempotent;
use sqlx::{Postgres, Transaction};

pub struct Transfer {
    pub id: i64,
    pub booked: DateTime<Utc>,
}

#[idempotent(key(transfer.booked))]
async fn credit(tx: &mut Transaction<'_, Postgres>, transfer: &Transfer) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
