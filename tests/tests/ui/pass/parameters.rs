//! Patterns, `mut`, `impl Trait`, lifetimes, generics, messages by value.

use std::borrow::Cow;
use std::fmt::Display;

use idempotent_runtime::{KeyPart, Store, idempotent};
use sqlx::{Sqlite, Transaction};

use super::{AppError, Channel, Msg, begin, delivered, key, msg};

type Tx<'c> = Transaction<'c, Sqlite>;
type Done = Result<(), AppError>;

#[derive(Clone, Copy)]
struct Context;

/// What a message is taken from.
struct Queue(Vec<i64>);

impl Queue {
    fn take(&mut self) -> i64 {
        self.0.pop().unwrap_or_default()
    }
}

#[idempotent(key = "event.id, channel")]
async fn references_and_values(
    tx: &mut Transaction<'_, Sqlite>,
    event: &Msg,
    channel: Channel,
) -> Result<usize, AppError> {
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    Ok(event.channel.len())
}

#[idempotent(key(id, channel), scope = "struct_pattern")]
async fn struct_pattern(tx: &mut Tx<'_>, Msg { id, channel }: Msg) -> Done {
    drop(channel);
    Ok(())
}

#[idempotent(key(a), scope = "tuple_pattern")]
async fn tuple_pattern(tx: &mut Tx<'_>, (a, mut b): (i64, String)) -> Done {
    b.push('x');
    Ok(())
}

#[idempotent(key(b), scope = "deep_pattern")]
async fn deep_pattern(tx: &mut Tx<'_>, whole @ &(a, [_, b, ..]): &(u8, [u8; 3])) -> Done {
    assert_eq!(whole.1[1], b + a - a);
    Ok(())
}

#[idempotent(key(id), scope = "alternatives")]
async fn alternatives(tx: &mut Tx<'_>, (Ok(id) | Err(id)): Result<i64, i64>) -> Done {
    Ok(())
}

#[idempotent(key(msg.id), scope = "mutable")]
async fn mutable(mut tx: &mut Tx<'_>, mut msg: Msg) -> Done {
    msg.id += 1;
    let lent = tx;
    sqlx::query("SELECT 1").execute(&mut **lent).await?;
    tx = lent;
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    Ok(())
}

#[idempotent(key(queue.take(), *id), scope = "mutable_in_the_key")]
async fn mutable_in_the_key(mut tx: &mut Tx<'_>, mut queue: Queue, id: &i64) -> Done {
    tx = lent(tx);
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    assert_eq!(queue.take(), 6);
    Ok(())
}

fn lent<'t, 'c>(tx: &'t mut Tx<'c>) -> &'t mut Tx<'c> {
    tx
}

#[idempotent(key(msg.id), scope = "unit_struct")]
async fn unit_struct(tx: &mut Tx<'_>, msg: &Msg, Context: Context) -> Done {
    Ok(())
}

#[idempotent(key(msg.id), scope = "sqlxs_alias")]
async fn sqlxs_alias(db: &mut sqlx::sqlite::SqliteTransaction<'_>, msg: &Msg) -> Done {
    sqlx::query("SELECT 1").execute(&mut **db).await?;
    Ok(())
}

#[idempotent(key(msg.id), scope = "moved")]
async fn moved(tx: &mut Tx<'_>, msg: Msg) -> Result<Msg, AppError> {
    let moved = msg;
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    Ok(moved)
}

#[idempotent(key(msg.id), scope = "alias_of_the_transaction")]
async fn alias_of_the_transaction(tx: &mut Tx<'_>, msg: &Msg) -> Done {
    Ok(())
}

#[idempotent(key(msg.id), tx = db, scope = "named_transaction")]
async fn named_transaction(msg: &Msg, db: &mut Tx<'_>) -> Done {
    sqlx::query("SELECT 1").execute(&mut **db).await?;
    Ok(())
}

#[idempotent(key(msg.id), tx = first, scope = "two_transactions")]
async fn two_transactions(
    first: &mut Transaction<'_, Sqlite>,
    _second: Option<&mut Transaction<'_, Sqlite>>,
    msg: &Msg,
) -> Done {
    Ok(())
}

#[idempotent(key(msg.id), tx = db, scope = "transaction_in_a_pattern")]
async fn transaction_in_a_pattern((db, msg): (&mut Tx<'_>, &Msg)) -> Done {
    sqlx::query("SELECT 1").execute(&mut **db).await?;
    Ok(())
}

#[idempotent(key(id), skip(name), scope = "impl_trait")]
async fn impl_trait(
    tx: &mut Tx<'_>,
    id: impl KeyPart + Send,
    _: &Context,
    name: &(impl Display + Sync),
    _log: Option<impl Fn(&str)>,
) -> Done {
    assert_eq!(name.to_string(), "x");
    Ok(())
}

#[idempotent(key(msg, sizes), scope = "generic")]
async fn generic<DB, M, const N: usize>(
    tx: &mut Transaction<'_, DB>,
    msg: M,
    sizes: &[u8; N],
) -> Result<M, AppError>
where
    DB: Store,
    M: KeyPart,
{
    Ok(msg)
}

struct Borrowing<'m> {
    id: Cow<'m, str>,
}

#[idempotent(key(msg.id), scope = "lifetimes")]
async fn lifetimes<'t, 'm>(
    tx: &'t mut Transaction<'static, Sqlite>,
    msg: &'t Borrowing<'m>,
) -> Result<&'t Cow<'m, str>, AppError> {
    Ok(&msg.id)
}

#[idempotent(key(msg.id), scope = "elided")]
async fn elided(tx: &mut Tx<'_>, msg: Borrowing<'_>) -> Done {
    Ok(())
}

#[idempotent(key(msg.id), skip(then), scope = "closures")]
async fn closures(tx: &mut Tx<'_>, msg: Msg, then: impl AsyncFnOnce(Msg)) -> Done {
    then(msg).await;
    Ok(())
}

#[idempotent(key(msg.id), scope = "crate_visible")]
pub(crate) async fn crate_visible(tx: &mut Tx<'_>, msg: &Msg) -> Done {
    Ok(())
}

/// Statics and functions in functions have the same path.
async fn nested(tx: &mut Tx<'_>) -> Done {
    #[idempotent(key(id), scope = "nested")]
    async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64) -> Done {
        Ok(())
    }
    handle(tx, 7).await.map(drop)
}

#[tokio::test]
async fn parameters() {
    let (mut tx, msg) = (begin().await, msg());
    let scope = concat!(module_path!(), "::references_and_values(event.id,channel)");
    delivered!(tx, scope => "7/Email", references_and_values(&mut tx, &msg, Channel::Email));
    assert!(
        !references_and_values(&mut tx, &msg, Channel::Push)
            .await
            .unwrap()
            .is_duplicate()
    );
    delivered!(tx, "struct_pattern" => "7/3", struct_pattern(&mut tx, msg.clone()));
    delivered!(tx, "tuple_pattern" => "1", tuple_pattern(&mut tx, (1, String::new())));
    delivered!(tx, "deep_pattern" => "3", deep_pattern(&mut tx, &(1, [2, 3, 4])));
    delivered!(tx, "alternatives" => "8", alternatives(&mut tx, Err(8)));
    delivered!(tx, "mutable" => "7", mutable(&mut tx, msg.clone()));
    let queue = || Queue(vec![6, 5]);
    delivered!(tx, "mutable_in_the_key" => "5/8", mutable_in_the_key(&mut tx, queue(), &8));
    delivered!(tx, "unit_struct" => "7", unit_struct(&mut tx, &msg, Context));
    delivered!(tx, "sqlxs_alias" => "7", sqlxs_alias(&mut tx, &msg));
    delivered!(tx, "moved" => "7", moved(&mut tx, msg.clone()));
    delivered!(tx, "alias_of_the_transaction" => "7", alias_of_the_transaction(&mut tx, &msg));
    delivered!(tx, "named_transaction" => "7", named_transaction(&msg, &mut tx));
    delivered!(tx, "two_transactions" => "7", two_transactions(&mut tx, None, &msg));
    delivered!(tx, "transaction_in_a_pattern" => "7", transaction_in_a_pattern((&mut tx, &msg)));
    delivered!(tx, "impl_trait" => "5", impl_trait(&mut tx, 5, &Context, &"x", None::<fn(&str)>));
    delivered!(tx, "generic" => "a/0102", generic(&mut tx, "a", &[1, 2]));
    let borrowing = || Borrowing { id: "b".into() };
    delivered!(tx, "lifetimes" => "b", lifetimes(&mut tx, &borrowing()));
    delivered!(tx, "elided" => "b", elided(&mut tx, borrowing()));
    delivered!(tx, "closures" => "7", closures(&mut tx, msg.clone(), async |_| ()));
    delivered!(tx, "crate_visible" => "7", crate_visible(&mut tx, &msg));
    nested(&mut tx).await.unwrap();
    nested(&mut tx).await.unwrap();
    assert_eq!(key(&mut tx, "nested").await, "7");
}
