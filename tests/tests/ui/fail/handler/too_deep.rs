use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[allow(unused_parens)]
#[idempotent(key(id))]
#[rustfmt::skip]
async fn handle(tx: &mut Transaction<'_, Sqlite>, id: ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((i64))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))) -> sqlx::Result<()> {
    let _ = (tx, id);
    Ok(())
}

fn main() {}
