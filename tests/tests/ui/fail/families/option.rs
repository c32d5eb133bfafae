use idempotent_runtime::idempotent;
use sqlx::{Postgres, Transaction};

pub struct Delivery {
    pub message_id: Option<String>,
}

#[idempotent(key(delivery.message_id))]
async fn credit(tx: &mut Transaction<'_, Postgres>, delivery: &Delivery) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
