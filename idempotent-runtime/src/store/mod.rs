//! The databases.
//!
//! # The contract
//!
//! A [`Backend`] is stateless: everything happens in the transaction it is
//! given, and nothing outlives that transaction. There are no "in progress"
//! rows, no leases, no session locks; a crash leaves nothing to clean up.
//!
//! *Claim.* The key's row is inserted first. The unique index makes a
//! concurrent duplicate wait until the first transaction ends: `None` is
//! returned only for a key that is committed, or that this transaction claimed
//! before. Every doubt is an error.
//!
//! A key is claimed in a transaction or not at all: where it would be committed
//! by itself, the claim is an error.
//!
//! *Proof.* After the body, `prove` (or `release`, under a savepoint) succeeds
//! only in the transaction that claimed, and only if that can still commit.
//! On Postgres that is the transaction id, read together with the key's row;
//! on MariaDB and SQLite a uniquely named savepoint, since a check of the row
//! alone is fooled by a deadlock whose error was swallowed and another
//! consumer's commit.
//!
//! *Undo.* After an `Err`, `remove` (or `roll_back`) takes the key away in the
//! claiming transaction only. It never touches a row that another transaction
//! wrote. Where the claiming transaction is gone, `is_committed` tells a handler
//! that committed it from one that lost it to a deadlock.
//!
//! *Isolation.* On Postgres, READ COMMITTED gives `None` for a concurrent
//! duplicate; REPEATABLE READ and SERIALIZABLE raise 40001, which is
//! retryable. MariaDB's unique check reads the latest version at every level.
//! SQLite has one writer at a time.
//!
//! The three backends hold the same items in the same order.

use std::fmt::Debug;

use sqlx::{AssertSqlSafe, ColumnIndex, Database, Decode, Transaction, Type};

use crate::attempts::{Begin, Options};
use crate::error::Lost;
use crate::handler::Busy;
use crate::table::{self, Absence, Table};

mod catalog;
#[cfg(feature = "postgres")]
mod forget;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod nested;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod savepoint;
#[cfg(feature = "sqlite")]
mod sqlite;
mod upkeep;

pub(crate) use catalog::{
    Catalog, Column, Expression, Flaw, Kind, Nulls, Part, Relation, Unique, same,
};
pub(crate) use upkeep::{Due, Found, Upkeep};

/// A database that holds the keys: `Postgres`, `MySql` (for MariaDB and MySQL)
/// and `Sqlite`, each behind the feature of its name.
///
/// A handler may be generic over it. The trait is sealed.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{Store, idempotent};
/// use sqlx::Transaction;
///
/// #[idempotent(key = "order_id", scope = "orders.accept")]
/// async fn accept<DB: Store>(
///     tx: &mut Transaction<'_, DB>,
///     order_id: i64,
/// ) -> sqlx::Result<()> {
///     Ok(())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a database that can hold idempotency keys",
    label = "no store for `{Self}`",
    note = "enable the feature `postgres`, `mysql` or `sqlite` of `idempotent-runtime`, and name that database"
)]
pub trait Store: Backend + Catalog + Upkeep {}

#[diagnostic::do_not_recommend]
impl<DB: Backend + Catalog + Upkeep> Store for DB {}

/// The seam between the handler's frame and one database.
pub trait Backend: Database {
    /// Whether a statement that fails takes its transaction along, so that nothing of
    /// that can be committed any more.
    const FAILURE_ABORTS: bool;
    /// Whether a connection on which a statement was cut off is of no more use:
    /// sqlx-mysql 0.9.0 loses count of the answers if that was being prepared.
    const CLOSE_IF_CUT: bool;

    /// What is remembered of a claim, to prove it later and to know its row again.
    type Mark: Debug + Send + Sync;
    /// What `savepoint` remembers of the savepoint around claim and body.
    type Savepoint: Debug + Send + Sync;

    /// Claims a key. `None`: it is claimed already, and committed (or ours).
    /// Where another transaction has it, and may commit or not, this waits, or
    /// fails with `InFlight` if the row says so.
    fn claim(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
    ) -> impl Future<Output = Result<Option<Self::Mark>, Unproven>> + Send;

    /// Claims, in one statement, those of the names that nobody has claimed, and
    /// says which. They are distinct and in order: two batches that meet take
    /// turns. `None`: all are claimed, and committed (or ours).
    fn claim_all(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        names: &[Name<'_>],
    ) -> impl Future<Output = Result<Option<New<Self::Mark>>, Unproven>> + Send;

    /// Reads, as it is now, the row that a duplicate met. `None`: it has gone.
    fn recall(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
    ) -> impl Future<Output = Result<Option<Earlier>, Unproven>> + Send;

    /// Proves that the transaction is the one that claimed, and not aborted;
    /// with a result, by storing that.
    fn prove(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        mark: &Self::Mark,
        result: Option<&[u8]>,
    ) -> impl Future<Output = Result<(), Unproven>> + Send;

    /// Removes the row, and the others, in the claiming transaction only.
    fn remove(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        mark: &Self::Mark,
    ) -> impl Future<Output = Result<(), Unproven>> + Send;

    /// Says, outside the claiming transaction, whether the very row that it wrote is committed.
    fn is_committed(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        mark: &Self::Mark,
    ) -> impl Future<Output = bool> + Send;

    /// Sets a savepoint. If it fails or is cut off, it leaves the caller's
    /// transaction as it was.
    fn set_savepoint(
        tx: &mut Transaction<'_, Self>,
    ) -> impl Future<Output = Result<Self::Savepoint, sqlx::Error>> + Send;

    /// Proves as `prove` does, and ends the savepoint; its work stays. If cut
    /// off, followed by `cut`, its work is there as a whole or not at all.
    fn release(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        savepoint: &Self::Savepoint,
        mark: &Self::Mark,
        result: Option<&[u8]>,
    ) -> impl Future<Output = Result<(), Unproven>> + Send;

    /// Rolls back to the savepoint: key and rows go.
    fn roll_back(
        tx: &mut Transaction<'_, Self>,
        savepoint: &Self::Savepoint,
    ) -> impl Future<Output = Result<(), Unproven>> + Send;

    /// Queues the roll-back to the savepoint, for a handler that was cut off.
    /// It runs before the next statement on the connection.
    fn cut(tx: &mut Transaction<'_, Self>, savepoint: &Self::Savepoint);

    /// How `transact!` begins with these options.
    ///
    /// # Errors
    ///
    /// Names the option that this database does not have.
    fn begin(options: &Options) -> Result<Begin, &'static str>;

    /// Runs the statement that puts a session back as it was.
    fn restore(
        conn: &mut Self::Connection,
        statement: String,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// The statements that make the table.
    fn schema(table: &Table) -> Vec<String>;

    /// Makes the table unless it exists, safely from many processes at once.
    fn create(
        conn: &mut Self::Connection,
        table: &Table,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Says what is wrong with the table. `None`: it does not exist.
    fn inspect(
        conn: &mut Self::Connection,
        table: &Table,
    ) -> impl Future<Output = Result<Option<Vec<String>>, sqlx::Error>> + Send;
}

/// One row of the table: whose key it is, and what is stored with it.
#[derive(Clone, Copy, Debug)]
pub struct Row<'k> {
    pub(crate) table: &'static Table,
    pub(crate) scope: &'static str,
    pub(crate) key: &'k str,
    /// Rows that come and go with it: of its batch, or of its earlier names.
    pub(crate) others: &'k [Identity],
    /// Seconds after which it may be pruned.
    pub(crate) retain: Option<u64>,
    pub(crate) fingerprint: Option<&'k [u8]>,
    #[cfg_attr(
        not(any(feature = "mysql", feature = "postgres")),
        expect(dead_code, reason = "on SQLite everybody waits")
    )]
    pub(crate) busy: Busy,
}

/// A database that can tell at once that another transaction has a key:
/// `Postgres` and `MySql`. A generic handler with `busy = "fail"` asks for it.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{ManyWriters, idempotent};
/// use sqlx::Transaction;
///
/// #[idempotent(key(order_id), scope = "orders.accept", busy = "fail")]
/// async fn accept<DB: ManyWriters>(
///     tx: &mut Transaction<'_, DB>,
///     order_id: i64,
/// ) -> sqlx::Result<()> {
///     Ok(())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`busy = \"fail\"` needs a database with many writers, which `{Self}` is not known to be",
    label = "cannot fail at once",
    note = "leave `busy` out: on SQLite one transaction writes at a time, and `busy_timeout` of the connection bounds the wait"
)]
pub trait ManyWriters: Store {}

/// Scope and key of a row.
pub(crate) type Name<'k> = (&'k str, &'k str);

/// The same, owned.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Identity {
    pub(crate) scope: &'static str,
    pub(crate) key: String,
}

/// Those that nobody had claimed: at least one.
#[derive(Debug)]
pub struct New<M> {
    pub(crate) names: Vec<(String, String)>,
    pub(crate) mark: M,
}

/// What an earlier delivery of the message left.
#[derive(Debug)]
pub struct Earlier {
    /// RFC 3339, UTC.
    pub(crate) processed_at: String,
    /// How many seconds ago that was.
    pub(crate) age: f64,
    pub(crate) fingerprint: Option<Vec<u8>>,
    pub(crate) result: Option<Vec<u8>>,
}

/// Why a key could not be claimed, or a claim not be proven or undone.
#[derive(Debug)]
pub enum Unproven {
    /// The transaction is another, or aborted.
    Lost(Lost),
    /// Another transaction has the key, and is open.
    InFlight,
    /// The key is there, and its row cannot be read.
    Hidden,
    /// The server cannot do what the handler asks for.
    Unsupported(&'static str),
    /// The database did not say.
    Failed(sqlx::Error),
}

impl From<sqlx::Error> for Unproven {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error)
    }
}

/// `lost` recognises the errors that say that the claiming transaction is gone.
fn unproven(error: sqlx::Error, lost: impl Fn(&sqlx::Error) -> Option<Lost>) -> Unproven {
    lost(&error).map_or(Unproven::Failed(error), Unproven::Lost)
}

impl<'k> Row<'k> {
    /// The row of one of its names.
    pub(crate) fn of(self, (scope, key): Name<'k>) -> Self {
        let mut others = self.others.iter();
        let other = others.find(|other| other.scope == scope && other.key == key);
        Self {
            scope: other.map_or(self.scope, |other| other.scope),
            key,
            others: &[],
            ..self
        }
    }

    /// One of its names, owned.
    pub(crate) fn identity(self, name: Name<'k>) -> Identity {
        let row = self.of(name);
        Identity {
            scope: row.scope,
            key: row.key.to_owned(),
        }
    }

    /// The names of all its rows.
    pub(crate) fn names(self) -> impl Iterator<Item = Name<'k>> {
        let others = self.others.iter();
        let others = others.map(|other| (other.scope, other.key.as_str()));
        std::iter::once((self.scope, self.key)).chain(others)
    }

    /// Puts the row into a statement, unquoted: the alphabets of scopes and keys have no quote and
    /// no backslash.
    #[cfg(any(feature = "mysql", feature = "sqlite"))]
    fn sql(self, template: &str, quote: char) -> AssertSqlSafe<String> {
        let template = template
            .replace("{scope}", self.scope)
            .replace("{key}", self.key);
        sql(&template, self.table, quote)
    }

    /// Puts the columns that only some handlers have into an `INSERT`: `{columns}`
    /// and `{values}`, with `expiry` for the time `{retain}` seconds from now.
    fn insert(self, template: &str, expiry: &str, fingerprint: &str) -> String {
        let (mut columns, mut values) = (String::new(), String::new());
        if let Some(retain) = self.retain {
            columns += ", expires_at";
            values += ", ";
            values += &expiry.replace("{retain}", &retain.to_string());
        }
        if self.fingerprint.is_some() {
            columns += ", fingerprint";
            values += ", ";
            values += fingerprint;
        }
        template
            .replace("{columns}", &columns)
            .replace("{values}", &values)
    }
}

/// Names as JSON: their alphabet needs no quoting in it.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
fn json(names: &[Name<'_>]) -> String {
    let name = |(scope, key): &Name<'_>| format!("[\"{scope}\", \"{key}\"]");
    names.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Bytes as hexadecimal digits, which need no quoting.
fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;

    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}"); // into a `String`, it cannot fail
    }
    text
}

/// Puts the table into a statement. Table names are validated when made, so
/// that quoting them is enough.
fn sql(template: &str, table: &Table, quote: char) -> AssertSqlSafe<String> {
    AssertSqlSafe(template.replace("{table}", &table.quoted(quote)))
}

/// A row of the statement `COLUMNS`.
fn column<'r, R: sqlx::Row>(row: &'r R) -> Result<table::Column, sqlx::Error>
where
    usize: ColumnIndex<R>,
    bool: Decode<'r, R::Database> + Type<R::Database>,
    String: Decode<'r, R::Database> + Type<R::Database>,
{
    let (is_required, has_default) = (row.try_get(3)?, row.try_get(4)?);
    Ok(table::Column {
        name: row.try_get(0)?,
        kind: row.try_get(1)?,
        fits: row.try_get(2)?,
        absence: match (is_required, has_default) {
            (false, _) => Absence::Null,
            (true, true) => Absence::Default,
            (true, false) => Absence::Refused,
        },
        is_exact: row.try_get(5)?,
    })
}
