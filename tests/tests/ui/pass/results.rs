//! What handlers return, and how they come to it.

use std::error::Error as StdError;

use idempotent_runtime::{Error, Outcome, idempotent};
use sqlx::{Sqlite, Transaction};

use super::{AppError, Msg, begin, delivered, msg};

type Answer<T> = std::result::Result<T, AppError>;
type Done = std::result::Result<(), AppError>;

mod alias {
    pub(super) type Result<T, E = super::AppError> = std::result::Result<T, E>;
}

#[idempotent(key(msg.id), scope = "ours")]
async fn ours(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> Result<u8, Error> {
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    Ok(1)
}

#[idempotent(key(msg.id), scope = "two_errors")]
async fn two_errors(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> Result<usize, AppError> {
    let number: usize = msg.channel.parse()?;
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    Ok(number)
}

#[idempotent(key(msg.id), scope = "anyhow")]
async fn anyhow(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> anyhow::Result<usize> {
    Ok(msg.channel.parse()?)
}

#[idempotent(key(msg.id), scope = "boxed_error")]
async fn boxed_error(
    tx: &mut Transaction<'_, Sqlite>,
    msg: Msg,
) -> Result<usize, Box<dyn StdError + Send + Sync>> {
    Ok(msg.channel.parse()?)
}

#[idempotent(key(msg.id), scope = "alias_with_default")]
async fn alias_with_default(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> alias::Result<u8> {
    Ok(1)
}

#[idempotent(key(msg.id), scope = "alias_of_one")]
async fn alias_of_one(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> Answer<u8> {
    Ok(1)
}

#[idempotent(key(msg.id), scope = "alias_of_none")]
async fn alias_of_none(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> Done {
    Ok(())
}

#[idempotent(key(msg.id), scope = "early_return")]
async fn early_return(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> Answer<i64> {
    for id in 0.. {
        if id == msg.id {
            return Ok(id);
        }
    }
    unreachable!()
}

#[idempotent(key(msg.id), scope = "endless")]
async fn endless(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> Answer<i64> {
    loop {
        if msg.id == 7 {
            return Ok(7);
        }
    }
}

#[expect(clippy::needless_return, reason = "`return` is what is tried here")]
#[idempotent(key(msg.id), scope = "refused")]
async fn refused(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> Answer<usize> {
    return Err("x".parse::<usize>().unwrap_err())?;
}

#[expect(dead_code, reason = "it compiles, which is the point")]
#[idempotent(key(msg.id), scope = "unwritten")]
async fn unwritten(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> Answer<u8> {
    todo!()
}

#[idempotent(key(msg.id), scope = "borrowed")]
async fn borrowed<'m>(tx: &mut Transaction<'_, Sqlite>, msg: &'m Msg) -> Result<&'m str, AppError> {
    Ok(&msg.channel)
}

#[idempotent(key(msg.id), scope = "borrowed_alias")]
async fn borrowed_alias<'m>(tx: &mut Transaction<'_, Sqlite>, msg: &'m Msg) -> Answer<&'m str> {
    Ok(&msg.channel)
}

struct Borrowing<'m>(&'m Msg);

impl Borrowing<'_> {
    #[idempotent(key(self.0.id), scope = "elided")]
    async fn elided(&self, tx: &mut Transaction<'static, Sqlite>) -> Answer<&str> {
        Ok(&self.0.channel)
    }
}

#[idempotent(key(id), scope = "inner_attributes")]
async fn inner_attributes(tx: &mut Transaction<'_, Sqlite>, id: i64) -> Answer<u8> {
    //! The body says what the function is for.
    #![allow(unused_variables)]
    let unused = 1;
    Ok(1)
}

/// A tail expression that would continue the statement before it.
#[idempotent(key(id), scope = "tail")]
async fn tail(tx: &mut Transaction<'_, Sqlite>, id: i64) -> Answer<i64> {
    { Some(id) }.map(Ok).unwrap()
}

#[tokio::test]
async fn results() {
    let (mut tx, msg) = (begin().await, msg());
    delivered!(tx, "ours" => "7", ours(&mut tx, &msg));
    delivered!(tx, "two_errors" => "7", two_errors(&mut tx, &msg));
    delivered!(tx, "anyhow" => "7", anyhow(&mut tx, &msg));
    delivered!(tx, "boxed_error" => "7", boxed_error(&mut tx, msg.clone()));
    delivered!(tx, "alias_with_default" => "7", alias_with_default(&mut tx, &msg));
    delivered!(tx, "alias_of_one" => "7", alias_of_one(&mut tx, &msg));
    delivered!(tx, "alias_of_none" => "7", alias_of_none(&mut tx, &msg));
    delivered!(tx, "early_return" => "7", early_return(&mut tx, &msg));
    delivered!(tx, "endless" => "7", endless(&mut tx, &msg));
    delivered!(tx, "borrowed" => "7", borrowed(&mut tx, &msg));
    delivered!(tx, "borrowed_alias" => "7", borrowed_alias(&mut tx, &msg));
    delivered!(tx, "elided" => "7", Borrowing(&msg).elided(&mut tx));
    delivered!(tx, "tail" => "7", tail(&mut tx, 7));
    delivered!(tx, "inner_attributes" => "7", inner_attributes(&mut tx, 7));
}

#[tokio::test]
async fn values_are_the_bodys() {
    let (mut tx, msg) = (begin().await, msg());
    assert_eq!(
        two_errors(&mut tx, &msg).await.unwrap(),
        Outcome::Processed(3)
    );
    assert_eq!(
        borrowed(&mut tx, &msg).await.unwrap(),
        Outcome::Processed("3")
    );
    assert!(matches!(
        refused(&mut tx, &msg).await,
        Err(AppError::Number(_))
    ));
    assert!(matches!(
        refused(&mut tx, &msg).await,
        Err(AppError::Number(_))
    ));
}
