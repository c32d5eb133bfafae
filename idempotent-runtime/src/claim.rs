//! The frame around a handler's body: claim, run, prove.

#![allow(
    clippy::missing_errors_doc,
    reason = "the functions that return a result are hidden"
)]

use sqlx::Transaction;
use sqlx_core::transaction::TransactionManager;
use uuid::Uuid;

use crate::error::{Cause, Error, Lost};
use crate::frame::{Answer, Frame};
use crate::handler::{Guard, Handler};
use crate::key::{Fingerprint, Key};
use crate::observe::{self, Decision};
use crate::store::{self, Earlier, Identity, ManyWriters, New, Store, Unproven};

/// The claim of the message at hand, as `bind = claim` names it in a handler's
/// body.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::idempotent;
/// use sqlx::Transaction;
///
/// # #[cfg(feature = "postgres")]
/// #[idempotent(key = "order_id", scope = "orders.charge", bind = claim)]
/// async fn charge(
///     tx: &mut Transaction<'_, sqlx::Postgres>,
///     order_id: i64,
/// ) -> sqlx::Result<String> {
///     // The same for every delivery of this order: the payment provider
///     // knows a second charge by it.
///     let idempotency_key = claim.derive("stripe-charge");
///     Ok(format!("{} -> {idempotency_key}", claim.key()))
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Claim {
    key: Key,
}

impl Claim {
    /// The UUIDv5 of `idempotent-runtime` in the DNS namespace.
    const NAMESPACE: Uuid = Uuid::from_u128(0x53e8_167a_c844_50c2_b0b5_47d9_7459_632a);

    /// Returns the scope of the handler.
    #[must_use]
    pub fn scope(&self) -> &'static str {
        self.key.scope()
    }

    /// Returns the key as it is stored.
    #[must_use]
    pub fn key(&self) -> &str {
        self.key.text()
    }

    /// Derives a stable id for a downstream call, the same at every delivery of
    /// the message: the `UUIDv5` (RFC 9562, section 5.5) of scope, key and label,
    /// each on a line of its own, in the namespace
    /// `53e8167a-c844-50c2-b0b5-47d97459632a`. With `was(…)`, of the name listed
    /// last, the oldest, so that a rename does not change it.
    #[must_use]
    pub fn derive(&self, label: &str) -> Uuid {
        let (scope, key) = match self.key.former().last() {
            Some(first) => (first.scope, first.key.as_str()),
            None => (self.scope(), self.key()),
        };
        let name = format!("{scope}\n{key}\n{label}");
        Uuid::new_v5(&Self::NAMESPACE, name.as_bytes())
    }
}

/// A claimed key, with the transaction that claimed it. Under
/// `guard = "savepoint"`, dropping it rolls back to the savepoint.
#[derive(Debug)]
pub struct Claimed<'a, 'c, DB: Store> {
    tx: &'a mut Transaction<'c, DB>,
    handler: &'static Handler,
    key: Key,
    /// The other rows: of its batch, or of its earlier names.
    others: Vec<Identity>,
    proof: Proof<DB>,
}

#[derive(Debug)]
enum Proof<DB: Store> {
    Mark(DB::Mark),
    /// The mark is there once the claim is.
    Savepoint(DB::Savepoint, Option<DB::Mark>),
    Settled,
}

impl<DB: Store> Drop for Claimed<'_, '_, DB> {
    fn drop(&mut self) {
        if let Proof::Savepoint(savepoint, _) = &self.proof {
            DB::cut(self.tx, savepoint);
        }
    }
}

/// A parameter that may be the transaction.
#[diagnostic::on_unimplemented(
    message = "`{Self}` in place of the transaction would commit the key apart from the effect",
    label = "not a transaction by `&mut`",
    note = "take `tx: &mut sqlx::Transaction<'_, DB>`: the caller commits it"
)]
pub trait HandlerTransaction<'a, 'c, DB: sqlx::Database> {
    /// The transaction itself.
    fn lend(self) -> &'a mut Transaction<'c, DB>;
}

#[diagnostic::do_not_recommend]
impl<'a, 'c, DB: sqlx::Database> HandlerTransaction<'a, 'c, DB> for &'a mut Transaction<'c, DB> {
    fn lend(self) -> Self {
        self
    }
}

/// The one place that asks whether the parameter is a transaction.
pub fn transaction_of<'a, 'c, T: HandlerTransaction<'a, 'c, DB>, DB: sqlx::Database>(
    parameter: T,
) -> &'a mut Transaction<'c, DB> {
    parameter.lend()
}

/// Claims the key. `Err` holds what the handler returns at once: `Duplicate`,
/// or an error.
pub async fn claim<'a, 'c, R, T, E, O, DB: Store>(
    frame: Frame<R, T, E, O>,
    tx: &'a mut Transaction<'c, DB>,
    handler: &'static Handler,
    key: Key,
) -> Result<Claimed<'a, 'c, DB>, O> {
    let is_age_told = observe::AGES && handler.retain.is_some();
    let recall = match (&key.fingerprint(), frame.codec) {
        (None, None) if is_age_told => Recall::Age,
        (None, None) => Recall::Nothing,
        _ => Recall::Earlier,
    };
    let (key, earlier) = match try_claim(tx, handler, key, recall).await {
        Ok(Claiming::Claimed(claimed)) => return Ok(claimed),
        Ok(Claiming::Duplicate(key, earlier)) => (key, earlier),
        Err(error) => return Err(frame.fail(error)),
    };
    let age = earlier.as_ref().map(|earlier| earlier.age);
    let answer = earlier.map_or(Ok(Answer::Duplicate), |earlier| {
        check_fingerprint(key.fingerprint(), &earlier)?;
        match frame.codec {
            Some(codec) => codec
                .decode(earlier.result.as_deref())
                .map(Answer::Replayed),
            None => Ok(Answer::Duplicate),
        }
    });
    Err(match answer {
        Ok(answer) => {
            let decision = match answer {
                Answer::Replayed(_) => Decision::Replayed,
                _ => Decision::Duplicate,
            };
            observe::decided(handler.scope, key.text(), decision, age);
            (frame.make)(Ok(answer))
        }
        Err(cause) => frame.fail(Error::about(handler.scope, key.text(), cause)),
    })
}

/// Tested before anything else is said of a duplicate. A fingerprint of other
/// parts, or of none, tells nothing.
fn check_fingerprint(of_message: Option<Fingerprint>, earlier: &Earlier) -> Result<(), Cause> {
    match (of_message, &earlier.fingerprint) {
        (Some(of_message), Some(stored)) if of_message.differs_from(stored) => {
            Err(Cause::KeyReused {
                since: earlier.processed_at.clone(),
            })
        }
        _ => Ok(()),
    }
}

/// The same for `busy = "fail"`, which not every database can do.
pub async fn claim_or_fail<'a, 'c, R, T, E, O, DB: ManyWriters>(
    frame: Frame<R, T, E, O>,
    tx: &'a mut Transaction<'c, DB>,
    handler: &'static Handler,
    key: Key,
) -> Result<Claimed<'a, 'c, DB>, O> {
    claim(frame, tx, handler, key).await
}

/// The transaction, lent to the body.
pub fn transaction<'t, 'c, DB: Store>(
    claimed: &'t mut Claimed<'_, 'c, DB>,
) -> &'t mut Transaction<'c, DB> {
    claimed.tx
}

/// The claim, as the body may see it.
#[must_use]
pub fn bound<DB: Store>(claimed: &Claimed<'_, '_, DB>) -> Claim {
    Claim {
        key: claimed.key.clone(),
    }
}

/// Proves the claim of a body that succeeded; undoes that of one that failed.
pub async fn finish<R, T, E, O, DB: Store>(
    frame: Frame<R, T, E, O>,
    claimed: Claimed<'_, '_, DB>,
    result: R,
) -> O {
    let value = match (frame.read)(result) {
        Ok(value) => value,
        Err(error) => {
            return match claimed.undo().await {
                Ok(()) => (frame.make)(Err(error)),
                Err(lost) => frame.fail(lost),
            };
        }
    };
    match frame.codec.map(|codec| codec.encode(&value)).transpose() {
        Ok(stored) => match claimed.prove(stored.as_deref()).await {
            Ok(key) => {
                observe::decided(key.scope(), key.text(), Decision::Processed, None);
                (frame.make)(Ok(Answer::Processed(value)))
            }
            Err(error) => frame.fail(error),
        },
        Err(cause) => {
            let error = claimed.error(cause);
            frame.fail(claimed.undo().await.err().unwrap_or(error))
        }
    }
}

/// What a duplicate needs to know of the earlier delivery.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Recall {
    Nothing,
    /// For the metrics, if it is there to be read.
    Age,
    /// What it left: to compare, or to give back.
    Earlier,
}

enum Claiming<'a, 'c, DB: Store> {
    Claimed(Claimed<'a, 'c, DB>),
    Duplicate(Key, Option<Earlier>),
}

async fn try_claim<'a, 'c, DB: Store>(
    tx: &'a mut Transaction<'c, DB>,
    handler: &'static Handler,
    key: Key,
    recall: Recall,
) -> Result<Claiming<'a, 'c, DB>, Error> {
    handler.check_scope()?;
    if !is_open(tx) {
        return Err(Error::about(key.scope(), key.text(), Lost::NotOpen));
    }
    if let Some(part) = key.missing() {
        return Err(Error::about(
            key.scope(),
            key.text(),
            Cause::MissingKey { part },
        ));
    }
    match handler.guard {
        Guard::Verify => {
            match claim_or_recall(tx, row(handler, &key, key.former()), recall).await {
                Ok(Row::New(mark)) => Ok(Claiming::Claimed(Claimed {
                    tx,
                    handler,
                    others: key.former().to_vec(),
                    key,
                    proof: Proof::Mark(mark),
                })),
                Ok(Row::Old(earlier)) => Ok(Claiming::Duplicate(key, earlier)),
                Err(unproven) => Err(Error::about(key.scope(), key.text(), unproven)),
            }
        }
        Guard::Savepoint => claim_under_savepoint(tx, handler, key, recall).await,
    }
}

async fn claim_under_savepoint<'a, 'c, DB: Store>(
    tx: &'a mut Transaction<'c, DB>,
    handler: &'static Handler,
    key: Key,
    recall: Recall,
) -> Result<Claiming<'a, 'c, DB>, Error> {
    let savepoint = match DB::set_savepoint(tx).await {
        Ok(savepoint) => savepoint,
        // sqlx finds no transaction to set it in.
        Err(sqlx::Error::BeginFailed) => {
            return Err(Error::about(key.scope(), key.text(), Lost::NotOpen));
        }
        Err(error) => return Err(Error::about(key.scope(), key.text(), error)),
    };
    // From here on a cut rolls back to the savepoint.
    let mut claimed = Claimed {
        tx,
        handler,
        others: key.former().to_vec(),
        key,
        proof: Proof::Savepoint(savepoint, None),
    };
    let row = row(handler, &claimed.key, &claimed.others);
    match claim_or_recall(claimed.tx, row, recall).await {
        Ok(Row::New(claim)) => {
            if let Proof::Savepoint(_, mark) = &mut claimed.proof {
                *mark = Some(claim);
            }
            Ok(Claiming::Claimed(claimed))
        }
        // Nothing of it is to stay: dropped, it rolls back an empty savepoint.
        Ok(Row::Old(earlier)) => Ok(Claiming::Duplicate(claimed.key.clone(), earlier)),
        Err(unproven) => {
            let error = Error::about(handler.scope, claimed.key.text(), unproven);
            claimed.undo().await?;
            Err(error)
        }
    }
}

/// The key's row: ours, or of an earlier delivery.
enum Row<M> {
    New(M),
    Old(Option<Earlier>),
}

/// All names or none: where one is there, the message was processed under it,
/// and the others are not to stay.
async fn claim_every_name<DB: Store>(
    tx: &mut Transaction<'_, DB>,
    row: store::Row<'_>,
) -> Result<Option<DB::Mark>, Unproven> {
    let mut names: Vec<_> = row.names().collect();
    names.sort_unstable();
    let Some(New { names: new, mark }) = DB::claim_all(tx, row, &names).await? else {
        return Ok(None);
    };
    if new.len() == names.len() {
        return Ok(Some(mark));
    }
    let is_new = |(scope, key): &store::Name<'_>| {
        let mut new = new.iter();
        new.any(|(new_scope, new_key)| new_scope == scope && new_key == key)
    };
    let mut inserted = row.names().filter(is_new);
    if let Some(first) = inserted.next() {
        let others: Vec<Identity> = inserted.map(|name| row.identity(name)).collect();
        let inserted = store::Row {
            others: &others,
            ..row.of(first)
        };
        DB::remove(tx, inserted, &mark).await?;
    }
    Ok(None)
}

async fn claim_or_recall<DB: Store>(
    tx: &mut Transaction<'_, DB>,
    row: store::Row<'_>,
    recall: Recall,
) -> Result<Row<DB::Mark>, Unproven> {
    for _ in 0..ROUNDS {
        let claimed = if row.others.is_empty() {
            DB::claim(tx, row).await?
        } else {
            claim_every_name(tx, row).await?
        };
        if let Some(mark) = claimed {
            return Ok(Row::New(mark));
        }
        if recall == Recall::Nothing {
            return Ok(Row::Old(None));
        }
        let mut in_flight = false;
        for name in row.names() {
            match DB::recall(tx, row.of(name)).await {
                Ok(Some(earlier)) => return Ok(Row::Old(Some(earlier))),
                Ok(None) => {}
                Err(Unproven::InFlight) => in_flight = true,
                Err(unproven) => return Err(unproven),
            }
        }
        if in_flight {
            return Err(Unproven::InFlight);
        }
        if recall == Recall::Age {
            return Ok(Row::Old(None));
        }
        // Pruned in between: now it is a new message.
    }
    Err(Unproven::Hidden)
}

/// How often a key is claimed of which the row is gone when it is read. A pruner
/// takes it once.
const ROUNDS: usize = 8;

impl<'a, 'c, DB: Store> Claimed<'a, 'c, DB> {
    /// Claims those of the keys that are new, which are distinct and in order.
    /// `None`: there is none.
    pub(crate) async fn of_batch(
        tx: &'a mut Transaction<'c, DB>,
        handler: &'static Handler,
        keys: &[&Key],
    ) -> Result<Option<Self>, Error> {
        handler.check_scope()?;
        let Some(first) = keys.first() else {
            return Ok(None);
        };
        let about =
            |cause: Cause| Error::about(handler.scope, &one_of(first.text(), keys.len()), cause);
        if !is_open(tx) {
            return Err(about(Lost::NotOpen.into()));
        }
        let names: Vec<_> = keys.iter().map(|key| (key.scope(), key.text())).collect();
        let savepoint = match handler.guard {
            Guard::Verify => None,
            Guard::Savepoint => match DB::set_savepoint(tx).await {
                Ok(savepoint) => Some(savepoint),
                Err(sqlx::Error::BeginFailed) => return Err(about(Lost::NotOpen.into())),
                Err(error) => return Err(about(error.into())),
            },
        };
        // From here on a cut rolls back to the savepoint.
        let mut claimed = Self {
            tx,
            handler,
            key: (*first).clone(),
            others: Vec::new(),
            proof: savepoint.map_or(Proof::Settled, |savepoint| {
                Proof::Savepoint(savepoint, None)
            }),
        };
        let row = row(handler, first, &[]);
        match DB::claim_all(claimed.tx, row, &names).await {
            Ok(Some(New { names, mark })) => {
                let mut fresh = names.into_iter().map(|(_, key)| key);
                if let Some(text) = fresh.next() {
                    claimed.key = claimed.key.with_text(text);
                }
                let scope = handler.scope;
                claimed.others = fresh.map(|key| Identity { scope, key }).collect();
                match &mut claimed.proof {
                    Proof::Savepoint(_, claim) => *claim = Some(mark),
                    proof => *proof = Proof::Mark(mark),
                }
                Ok(Some(claimed))
            }
            Ok(None) => Ok(None),
            Err(unproven) => {
                let error = about(unproven.into());
                claimed.undo().await?;
                Err(error)
            }
        }
    }

    /// All keys that it claimed.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let others = self.others.iter().map(|other| other.key.as_str());
        std::iter::once(self.key.text()).chain(others)
    }
}

impl<DB: Store> Claimed<'_, '_, DB> {
    /// Gives the key that was proven.
    pub(crate) async fn prove(mut self, result: Option<&[u8]>) -> Result<Key, Error> {
        let row = row(self.handler, &self.key, &self.others);
        let proven = match &self.proof {
            _ if !is_open(self.tx) => Err(Unproven::Lost(Lost::Dropped)),
            Proof::Mark(mark) => DB::prove(self.tx, row, mark, result).await,
            Proof::Savepoint(savepoint, Some(mark)) => {
                DB::release(self.tx, row, savepoint, mark, result).await
            }
            Proof::Savepoint(_, None) | Proof::Settled => Err(Unproven::Lost(Lost::NotOpen)),
        };
        self.proof = Proof::Settled;
        match proven {
            Ok(()) => Ok(self.key.take()),
            Err(unproven) => Err(self.error(unproven)),
        }
    }

    /// An error is that of a handler whose claim can no longer be undone.
    pub(crate) async fn undo(mut self) -> Result<(), Error> {
        let row = row(self.handler, &self.key, &self.others);
        let (undone, mark) = match &self.proof {
            Proof::Mark(mark) => (DB::remove(self.tx, row, mark).await, Some(mark)),
            Proof::Savepoint(savepoint, mark) => {
                (DB::roll_back(self.tx, savepoint).await, mark.as_ref())
            }
            Proof::Settled => (Ok(()), None),
        };
        let stays = match (undone, mark) {
            _ if !is_open(self.tx) => Some(Unproven::Lost(Lost::Dropped)),
            (Err(Unproven::Lost(_)), Some(mark)) => DB::is_committed(self.tx, row, mark)
                .await
                .then_some(Unproven::Lost(Lost::Ended)),
            // A privilege is missing, say. Without an answer the transaction is gone too.
            (Err(Unproven::Failed(error)), Some(_))
                if error.as_database_error().is_some() && !DB::FAILURE_ABORTS =>
            {
                Some(Unproven::Failed(error))
            }
            _ => None,
        };
        self.proof = Proof::Settled;
        stays.map_or(Ok(()), |unproven| Err(self.error(unproven)))
    }

    fn error(&self, cause: impl Into<Cause>) -> Error {
        // Earlier names of a message are no other messages.
        let messages = match self.key.former() {
            [] => 1 + self.others.len(),
            _ => 1,
        };
        Error::about(
            self.handler.scope,
            &one_of(self.key.text(), messages),
            cause,
        )
    }
}

/// How the first of some keys is named.
fn one_of(first: &str, keys: usize) -> String {
    match keys {
        0 | 1 => first.to_owned(),
        _ => format!("{first} and {} more", keys - 1),
    }
}

/// Says whether sqlx counts a transaction. It counts on the client: that it does
/// proves nothing, that it does not means that the next statement commits itself.
fn is_open<DB: Store>(tx: &Transaction<'_, DB>) -> bool {
    DB::TransactionManager::get_transaction_depth(tx) > 0
}

fn row<'k>(handler: &'static Handler, key: &'k Key, others: &'k [Identity]) -> store::Row<'k> {
    store::Row {
        table: &handler.table,
        scope: handler.scope,
        key: key.text(),
        others,
        retain: handler.retain,
        fingerprint: key.fingerprint_bytes(),
        busy: handler.busy,
    }
}
