use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

impl Msg {
    #[idempotent(key(self.id))]
    async fn method(&self, tx: &mut Transaction<'_, Sqlite>) -> sqlx::Result<()> {
        Ok(())
    }

    #[idempotent(key(id))]
    async fn associated(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<Self> {
        Ok(Msg { id })
    }

    #[idempotent(key(id))]
    async fn in_its_body(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<Msg> {
        Ok(Self { id })
    }
}

#[idempotent(key(id))]
async fn generic<T: idempotent_runtime::KeyPart>(
    tx: &mut Transaction<'_, Sqlite>,
    id: T,
) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(id))]
async fn some(
    tx: &mut Transaction<'_, Sqlite>,
    id: impl idempotent_runtime::KeyPart,
) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id.abs()))]
async fn call(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(größe))]
async fn größe(tx: &mut Transaction<'_, Sqlite>, größe: i64) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id))]
async fn a_handler_with_a_name_that_is_as_long_as_names_should_never_be_so_that_no_scope_can_hold_it_beside_the_key_of_its_messages(
    tx: &mut Transaction<'_, Sqlite>,
    msg: &Msg,
) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
