use idempotent_runtime::idempotent;
use sqlx::{Postgres, Transaction};

pub struct Delivery {
    pub delivery_tag: u64,
    pub message_id: String,
}

#[idempotent(key(delivery.delivery_tag))]
async fn credit(tx: &mut Transaction<'_, Postgres>, delivery: &Delivery) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
