//! The handlers: one effect, under each guard, one by one, in batches, and with its receipt.
//!
//! Those of one scope stand in for each other: an entry may be posted by one and come again to
//! another. Receipts have a scope of their own, since they have something to give back.

use std::slice;

use idempotent_runtime::idempotent;
use sqlx::{Postgres, Transaction};

use crate::entry::Entry;
use crate::ledger;

/// Where there is a key for each entry.
pub(crate) const SCOPES: [&str; 2] = ["chaos.postings", "chaos.receipts"];

#[idempotent(
    key(entry.event, entry.channel),
    skip(worker),
    scope = "chaos.postings",
    retain = "2 days",
    redelivery = "1 day"
)]
pub(crate) async fn one(
    tx: &mut Transaction<'_, Postgres>,
    entry: Entry,
    worker: i32,
) -> sqlx::Result<()> {
    ledger::post(tx, slice::from_ref(&entry), worker).await
}

#[idempotent(
    key(entry.event, entry.channel),
    skip(worker),
    scope = "chaos.postings",
    retain = "2 days",
    redelivery = "1 day",
    guard = "savepoint"
)]
pub(crate) async fn one_in_savepoint(
    tx: &mut Transaction<'_, Postgres>,
    entry: Entry,
    worker: i32,
) -> sqlx::Result<()> {
    ledger::post(tx, slice::from_ref(&entry), worker).await
}

#[idempotent(
    key(entry.event, entry.channel),
    each = "entry in entries",
    skip(worker),
    scope = "chaos.postings",
    retain = "2 days",
    redelivery = "1 day"
)]
pub(crate) async fn many(
    tx: &mut Transaction<'_, Postgres>,
    entries: Vec<Entry>,
    worker: i32,
) -> sqlx::Result<()> {
    ledger::post(tx, &entries, worker).await
}

#[idempotent(
    key(entry.event, entry.channel),
    each = "entry in entries",
    skip(worker),
    scope = "chaos.postings",
    retain = "2 days",
    redelivery = "1 day",
    guard = "savepoint"
)]
pub(crate) async fn many_in_savepoint(
    tx: &mut Transaction<'_, Postgres>,
    entries: Vec<Entry>,
    worker: i32,
) -> sqlx::Result<()> {
    ledger::post(tx, &entries, worker).await
}

#[idempotent(
    key(entry.event, entry.channel),
    skip(worker),
    scope = "chaos.receipts",
    retain = "2 days",
    redelivery = "1 day",
    replay
)]
pub(crate) async fn receipt(
    tx: &mut Transaction<'_, Postgres>,
    entry: Entry,
    worker: i32,
) -> sqlx::Result<i64> {
    ledger::post(tx, slice::from_ref(&entry), worker).await?;
    Ok(entry.cents())
}

#[idempotent(
    key(entry.event, entry.channel),
    skip(worker),
    scope = "chaos.receipts",
    retain = "2 days",
    redelivery = "1 day",
    replay,
    guard = "savepoint"
)]
pub(crate) async fn receipt_in_savepoint(
    tx: &mut Transaction<'_, Postgres>,
    entry: Entry,
    worker: i32,
) -> sqlx::Result<i64> {
    ledger::post(tx, slice::from_ref(&entry), worker).await?;
    Ok(entry.cents())
}
