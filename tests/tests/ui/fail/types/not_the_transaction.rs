use idempotent_runtime::idempotent;

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(msg.id))]
async fn handle(tx: &mut String, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
