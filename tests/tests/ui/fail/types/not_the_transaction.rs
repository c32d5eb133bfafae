use idempotent_runtime::idempotent;

pub type Db = sqlx::SqlitePool;

pub type Connection = sqlx::SqliteConnection;

#[idempotent(key(id))]
async fn pool(tx: &mut Db, id: i64) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(id), tx = db)]
async fn connection(db: &mut Connection, id: i64) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(id), tx = db)]
async fn by_value(db: Db, id: i64) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(id), tx = db)]
async fn shared(db: &Db, id: i64) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(id), tx = db, scope = "executor")]
async fn executor(db: impl sqlx::SqliteExecutor<'_>, id: i64) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
