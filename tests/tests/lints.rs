//! No lint fires on what the attribute generates. What fires on the user's own
//! code is among the `ui` cases.

#![deny(
    warnings,
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    clippy::nursery
)]
#![allow(
    clippy::redundant_pub_crate,
    reason = "`unreachable_pub` asks for the opposite"
)]
#![forbid(unsafe_code)]

use std::sync::Mutex;

use idempotent_runtime::{KeyPart, Outcome, Store, idempotent, migrate, transact};
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{Sqlite, Transaction};

/// A message.
#[derive(Clone, Debug)]
pub struct Msg {
    /// Given by the producer.
    pub id: i64,
    /// Where it goes.
    pub channel: String,
    /// What it answers.
    pub parent: Option<i64>,
    /// What answers it.
    pub answer: Option<i64>,
    /// When it was sent.
    pub at: std::time::SystemTime,
}

/// Documented, public, with an effect.
///
/// # Errors
///
/// Those of the database.
#[idempotent(key(msg.id, msg.channel))]
pub async fn documented(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<String> {
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    Ok(msg.channel.clone())
}

/// Every kind of part, quoted.
///
/// # Errors
///
/// Those of the database.
///
/// # Panics
///
/// If the lock is poisoned.
#[idempotent(
    key = "required(msg.parent), nullable(msg.answer), stable(msg.at), stable(lock.lock().unwrap().id + 1), msg.id.abs()",
    scope = "lints.quoted",
    guard = "savepoint",
    bind = claim,
    table = "processed_messages"
)]
pub async fn quoted(
    tx: &mut Transaction<'_, Sqlite>,
    mut msg: Msg,
    lock: &Mutex<Msg>,
) -> sqlx::Result<usize> {
    msg.id += 1;
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    Ok(claim.key().len())
}

/// Every kind of part, unquoted.
///
/// # Errors
///
/// Those of the database.
#[idempotent(
    key(required(msg.parent), nullable(msg.answer), stable(msg.at), stable(msg.id + 1), msg.id.abs(), &msg.id),
    scope = "lints.unquoted",
    skip(mailer),
)]
pub async fn unquoted(
    tx: &mut Transaction<'_, Sqlite>,
    msg: &Msg,
    mailer: &str,
) -> Result<usize, idempotent_runtime::Error> {
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    Ok(mailer.len())
}

/// Parameters that are not used, and an underscore that says so.
///
/// # Errors
///
/// None.
#[idempotent(key(id))]
pub async fn unused(
    _tx: &mut Transaction<'_, Sqlite>,
    id: i64,
    _unused: &Msg,
    _: u8,
) -> sqlx::Result<()> {
    Ok(())
}

/// A body of one value, which clippy would make a function without `async`.
///
/// # Errors
///
/// None.
#[must_use = "it says whether the id is new"]
#[deprecated = "use `documented`"]
#[idempotent(key(id), scope = "lints.generic")]
pub async fn generic<DB: Store, K: KeyPart + Send>(
    _tx: &mut Transaction<'_, DB>,
    id: K,
) -> sqlx::Result<K> {
    Ok(id)
}

/// What clippy says of a function, it says of a handler too.
///
/// # Errors
///
/// None.
#[expect(clippy::needless_return, reason = "that is the lint to be seen")]
#[idempotent(key(id))]
pub async fn needless_return(_tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<i64> {
    return Ok(id);
}

/// Vanishes, with all that the attribute made of it.
#[cfg(any())]
#[idempotent(key(id))]
pub async fn absent(tx: &mut Nowhere, id: i64) -> Nothing {}

/// Not below the attribute either.
#[idempotent(key(id))]
#[cfg_attr(all(), doc = "Documented twice.")]
#[cfg(any())]
pub async fn absent(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<Nothing> {}

/// A span around the whole.
///
/// # Errors
///
/// Those of the database.
#[tracing::instrument(skip(tx), err)]
#[idempotent(key(id))]
pub async fn instrumented_above(
    tx: &mut Transaction<'_, Sqlite>,
    id: i64,
) -> Result<i64, idempotent_runtime::Error> {
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    Ok(id)
}

/// The same from below.
///
/// # Errors
///
/// Those of the database.
#[idempotent(key(id))]
#[tracing::instrument(skip(tx), ret, err)]
pub async fn instrumented_below(
    tx: &mut Transaction<'_, Sqlite>,
    id: i64,
) -> Result<i64, idempotent_runtime::Error> {
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    Ok(id)
}

/// A handler of several.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    tenant: i64,
}

impl Service {
    /// A method.
    ///
    /// # Errors
    ///
    /// Those of the database.
    #[idempotent(key(self.tenant, msg.id), scope = "lints.method")]
    pub async fn method(&self, tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<i64> {
        sqlx::query("SELECT 1").execute(&mut **tx).await?;
        Ok(self.tenant)
    }
}

/// Objects.
#[async_trait::async_trait]
pub trait Handle {
    /// Handles.
    async fn handle(
        &self,
        tx: &mut Transaction<'_, Sqlite>,
        msg: &Msg,
    ) -> sqlx::Result<Outcome<i64>>;
}

#[async_trait::async_trait]
impl Handle for Service {
    #[idempotent(key(self.tenant, msg.id), scope = "lints.object")]
    async fn handle(&self, tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<i64> {
        sqlx::query("SELECT 1").execute(&mut **tx).await?;
        if msg.id < 0 {
            return Ok(0);
        }
        Ok(self.tenant)
    }
}

/// A module whose items are not reachable from outside.
mod inner {
    use super::{Sqlite, Transaction, idempotent};

    #[idempotent(key(id))]
    pub(super) async fn inner(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<i64> {
        sqlx::query("SELECT 1").execute(&mut **tx).await?;
        Ok(id)
    }
}

#[tokio::test]
#[expect(deprecated, reason = "the attribute keeps `#[deprecated]`")]
async fn the_handlers_run() -> Result<(), Box<dyn std::error::Error>> {
    let options = SqlitePoolOptions::new().max_connections(1);
    let pool = options.connect("sqlite::memory:").await?;
    migrate(&pool).await?;
    let msg = Msg {
        id: 7,
        channel: "push".to_owned(),
        parent: Some(1),
        answer: None,
        at: std::time::UNIX_EPOCH,
    };
    let service = Service { tenant: 1 };
    let lock = Mutex::new(msg.clone());

    let mut tx = pool.begin().await?;
    let first = documented(&mut tx, &msg).await?;
    assert_eq!(first, Outcome::Processed("push".to_owned()));
    let keys = quoted(&mut tx, msg.clone(), &lock).await?;
    assert_eq!(
        keys.processed(),
        Some("1/~/1970-01-01T00:00:00.000000000Z/8/7".len())
    );
    assert_eq!(unquoted(&mut tx, &msg, "me").await?, Outcome::Processed(2));
    assert_eq!(unused(&mut tx, 7, &msg, 0).await?, Outcome::Processed(()));
    assert_eq!(needless_return(&mut tx, 7).await?, Outcome::Processed(7));
    assert_eq!(generic(&mut tx, 7).await?, Outcome::Processed(7));
    assert_eq!(instrumented_above(&mut tx, 7).await?, Outcome::Processed(7));
    assert_eq!(instrumented_below(&mut tx, 7).await?, Outcome::Processed(7));
    assert_eq!(service.method(&mut tx, &msg).await?, Outcome::Processed(1));
    assert_eq!(service.handle(&mut tx, &msg).await?, Outcome::Processed(1));
    assert_eq!(inner::inner(&mut tx, 7).await?, Outcome::Processed(7));
    tx.commit().await?;

    let again = transact!(&pool, tx => documented(tx, &msg), inner::inner(tx, 7)).await?;
    assert_eq!(again, (Outcome::Duplicate, Outcome::Duplicate));
    Ok(())
}
