//! Parameters with the names that the expansion gives to its own variables.

#![allow(clippy::too_many_arguments, reason = "there are as many names")]

use idempotent_runtime::{Outcome, idempotent};
use sqlx::{Sqlite, Transaction};

use super::{begin, delivered};

#[idempotent(
    key(key, result, inner, conn, msg, cache, rows, handler, frame, claimed, outcome, claim, future),
    tx = transaction
)]
async fn all(
    key: u8,
    mut result: u8,
    inner: u8,
    conn: u8,
    msg: u8,
    cache: u8,
    rows: u8,
    transaction: &mut Transaction<'_, Sqlite>,
    handler: u8,
    frame: u8,
    claimed: u8,
    outcome: u8,
    claim: u8,
    future: u8,
) -> sqlx::Result<u8> {
    result += 0;
    sqlx::query("SELECT 1").execute(&mut **transaction).await?;
    Ok(key + result + inner + conn + msg + cache + rows)
        .map(|sum: u8| sum + handler + frame + claimed + outcome + claim + future)
}

/// The transaction, too, may have any of them.
#[idempotent(key(tx), tx = key, scope = "transaction_key", bind = claimed)]
async fn transaction_key(key: &mut Transaction<'_, Sqlite>, tx: u8) -> sqlx::Result<u8> {
    sqlx::query("SELECT 1").execute(&mut **key).await?;
    Ok(tx + u8::try_from(claimed.key().len()).unwrap())
}

#[idempotent(key(size), scope = "const_parameter")]
async fn const_parameter<const HANDLER: usize>(
    result: &mut Transaction<'_, Sqlite>,
    size: &[u8; HANDLER],
) -> sqlx::Result<usize> {
    sqlx::query("SELECT 1").execute(&mut **result).await?;
    Ok(HANDLER + size.len())
}

#[tokio::test]
async fn parameters() {
    let mut tx = begin().await;
    let scope = concat!(
        module_path!(),
        "::all(key,result,inner,conn,msg,cache,rows,handler,frame,claimed,outcome,claim,future)"
    );
    delivered!(
        tx,
        scope => "1/2/3/4/5/6/7/8/9/10/11/12/13",
        all(1, 2, 3, 4, 5, 6, 7, &mut tx, 8, 9, 10, 11, 12, 13)
    );
    delivered!(tx, "transaction_key" => "5", transaction_key(&mut tx, 5));
    delivered!(tx, "const_parameter" => "010203", const_parameter(&mut tx, &[1, 2, 3]));
    let again = transaction_key(&mut tx, 6).await.unwrap();
    assert_eq!(again, Outcome::Processed(7));
}
