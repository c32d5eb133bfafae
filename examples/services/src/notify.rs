//! The service itself, whichever broker it stands behind.

use std::collections::HashSet;

use idempotent_runtime::{
    Disposition, KeyPart, Permanent, Verdict, disposition, idempotent, transact,
};
use serde::{Deserialize, Serialize};
use sqlx::{PgPool, Postgres, Transaction, query};

use crate::database::was_down;

/// A transfer is complete: what the transfer service publishes.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TransferCompleted {
    /// The producer gave it once. It is the same at every delivery, whatever the broker counts.
    pub id: String,
    /// Whom to tell.
    pub account: String,
    /// How much it was.
    pub cents: i64,
}

impl TransferCompleted {
    /// One for the show.
    #[must_use]
    pub fn sample(number: u32) -> Self {
        Self {
            id: format!("transfer-{number}"),
            account: format!("account-{}", number % 10),
            cents: i64::from(number) * 100 + 95,
        }
    }
}

/// How a customer is told.
#[derive(Clone, Copy, Debug, Deserialize, Eq, KeyPart, PartialEq, Serialize)]
pub enum Channel {
    /// By e-mail.
    #[key(name = "EMAIL")]
    Email,
    /// By a push notice.
    #[key(name = "PUSH")]
    Push,
}

impl Channel {
    /// Every event is rightly fanned out to each.
    pub const ALL: [Self; 2] = [Self::Email, Self::Push];

    /// Returns its name in the key and in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Email => "EMAIL",
            Self::Push => "PUSH",
        }
    }
}

/// One event on one channel.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Notice {
    /// What happened.
    pub event: TransferCompleted,
    /// How to tell it.
    pub channel: Channel,
}

/// Stores the notices that are to be sent: each once per event *and channel*.
///
/// `key(notice.event.id)` alone would take the push notice for a duplicate of the e-mail. The table
/// has a unique key of the same grain, as a second line of defence.
///
/// With a batch of one it is a handler of single messages, at the same price.
///
/// Keys are kept for the latest copy of all brokers here: on SQS a message waits for 14 days at most,
/// and as a dead letter for 14 more. `docs/brokers.md` has the numbers of each.
///
/// # Errors
///
/// [`Permanent`], if a notice can never be stored. Anything else may pass.
#[idempotent(
    key(notice.event.id, notice.channel),
    each = "notice in notices",
    scope = "notify",
    retain = "35 days",
    redelivery = "28 days"
)]
pub async fn notify(tx: &mut Transaction<'_, Postgres>, notices: Vec<Notice>) -> sqlx::Result<()> {
    if let Some(notice) = notices.iter().find(|notice| notice.event.cents <= 0) {
        let why = format!("`{}` is no transfer of money", notice.event.id);
        return Err(sqlx::Error::Encode(Permanent::new(why).into()));
    }
    store(tx, &notices).await
}

pub(crate) async fn store(
    tx: &mut Transaction<'_, Postgres>,
    notices: &[Notice],
) -> sqlx::Result<()> {
    let column = |text: fn(&Notice) -> &str| notices.iter().map(text).collect::<Vec<_>>();
    query(
        "INSERT INTO notifications (event_id, channel, account, cents) \
         SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])",
    )
    .bind(column(|notice| &notice.event.id))
    .bind(column(|notice| notice.channel.name()))
    .bind(column(|notice| &notice.event.account))
    .bind(
        notices
            .iter()
            .map(|notice| notice.event.cents)
            .collect::<Vec<_>>(),
    )
    .execute(&mut **tx)
    .await
    .map_err(told_before)?;
    Ok(())
}

/// The second line of defence has held: the notice is there, and its key is gone. It can never be
/// stored again.
fn told_before(error: sqlx::Error) -> sqlx::Error {
    let database = error.as_database_error();
    if database
        .is_some_and(|error| error.is_unique_violation() && error.table() == Some("notifications"))
    {
        let why = "it was stored before, and its key was pruned or forgotten too soon";
        return sqlx::Error::Encode(Permanent::new(why).into());
    }
    error
}

/// What happens to the other notices of an account when one has to come again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Order {
    /// They are tried: the broker promises no order.
    Any,
    /// Those behind it have to come again, too.
    ByAccount,
}

/// Handles what the broker gave at once, in one transaction, and says what came of each. If that
/// fails, one by one: a bad notice does not hold up the others. What could not be read stays an error.
///
/// While the database is down no notice is to blame: this waits, and tries again. Given back, they
/// would use up the deliveries that the broker allows.
pub async fn handle(
    pool: &PgPool,
    notices: Vec<sqlx::Result<Notice>>,
    order: Order,
) -> Vec<sqlx::Result<Verdict>> {
    let readable: Vec<Notice> = notices.iter().flatten().cloned().collect();
    let mut verdicts = match together(pool, &readable).await {
        Some(verdicts) => verdicts.into_iter(),
        None => one_by_one(pool, &readable, order).await.into_iter(),
    };
    let mut verdict = |_| {
        let verdict = verdicts.next();
        verdict.unwrap_or_else(|| Err(sqlx::Error::Protocol("a notice has no verdict".to_owned())))
    };
    notices
        .into_iter()
        .map(|notice| notice.and_then(&mut verdict))
        .collect()
}

async fn together(pool: &PgPool, notices: &[Notice]) -> Option<Vec<sqlx::Result<Verdict>>> {
    if notices.len() < 2 {
        return None;
    }
    loop {
        if let Ok(batch) = transact!(pool, tx => notify(tx, notices.to_vec())).await {
            return Some(batch.outcomes.into_iter().map(Ok).collect());
        }
        if !was_down(pool).await {
            return None;
        }
    }
}

async fn one_by_one(pool: &PgPool, notices: &[Notice], order: Order) -> Vec<sqlx::Result<Verdict>> {
    let mut verdicts = Vec::with_capacity(notices.len());
    let mut held_up = HashSet::new();
    for notice in notices {
        let account = &notice.event.account;
        if held_up.contains(account) {
            let why = "one before it, of the same account, has to come again first";
            verdicts.push(Err(sqlx::Error::Protocol(why.to_owned())));
            continue;
        }
        let verdict = one(pool, notice).await;
        let is_again = |error: &sqlx::Error| matches!(disposition(error), Disposition::Redeliver);
        if order == Order::ByAccount && verdict.as_ref().is_err_and(is_again) {
            held_up.insert(account);
        }
        verdicts.push(verdict);
    }
    verdicts
}

async fn one(pool: &PgPool, notice: &Notice) -> sqlx::Result<Verdict> {
    loop {
        let one = transact!(pool, tx => notify(tx, vec![notice.clone()])).await;
        if one.is_ok() || !was_down(pool).await {
            return one.map(|batch| batch.outcomes[0]);
        }
    }
}

/// Reads a notice from the body of a message.
///
/// # Errors
///
/// [`Permanent`]: it will not be more readable the next time.
pub fn read<'m, T: Deserialize<'m>>(body: &'m [u8]) -> sqlx::Result<T> {
    serde_json::from_slice(body).map_err(|error| sqlx::Error::Encode(Permanent::new(error).into()))
}
