//! What is done with the table outside of any delivery: pruning, looking a key
//! up, forgetting it, the index for all that.
//!
//! # The contract
//!
//! *Pruning* is a look and a batch, again and again. The look is a plain read:
//! it locks nothing, and says where the first row is that is due. The batch is
//! one statement that commits itself, so that a cut leaves nothing open. It
//! begins at that row, so that it does not wade through the dead rows of the
//! batches before it, and passes over rows that others have locked, so that it
//! never waits for a claim. A claim of a key in it waits for the batch's end, and
//! is a new message then.
//!
//! *Time* is the database's.
//!
//! The three backends hold the same items in the same order.

use std::fmt::Debug;

use sqlx::Database;

use crate::table::Table;

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "postgres")]
pub(super) use postgres::index as postgres_index;
#[cfg(feature = "sqlite")]
pub(super) use sqlite::index as sqlite_index;

/// The seam between the table's upkeep and one database.
pub trait Upkeep: Database {
    /// Says where the first row is that is due, from a place on. `None`: no row
    /// is due. It locks nothing.
    fn look(
        conn: &mut Self::Connection,
        table: &Table,
        due: &Due,
        from: Option<&str>,
    ) -> impl Future<Output = Result<Option<String>, sqlx::Error>> + Send;

    /// Deletes rows that are due, from a place on, as many as the limit says,
    /// except those that others have locked. `None`: another pruner is at work.
    fn prune(
        conn: &mut Self::Connection,
        table: &Table,
        due: &Due,
        from: &str,
        limit: u32,
    ) -> impl Future<Output = Result<Option<u64>, sqlx::Error>> + Send;

    /// Reads a row.
    fn look_up(
        conn: &mut Self::Connection,
        table: &Table,
        scope: &str,
        key: &str,
    ) -> impl Future<Output = Result<Option<Found>, sqlx::Error>> + Send;

    /// Deletes a row. `false`: there was none.
    fn forget(
        conn: &mut Self::Connection,
        table: &Table,
        scope: &str,
        key: &str,
    ) -> impl Future<Output = Result<bool, sqlx::Error>> + Send;

    /// Adds the index that pruning needs, unless the table has one, or may not be
    /// given one now: the role may not, or a transaction holds the table.
    fn add_index(
        conn: &mut Self::Connection,
        table: &Table,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

/// Which rows may go.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Due {
    /// Those whose time has come.
    Expired,
    /// Those of a scope that carry no expiry and are older than this.
    Older {
        /// Whose rows.
        scope: String,
        /// How old, in microseconds.
        age: i64,
    },
}

/// A row, with its times in microseconds since 1970.
#[derive(Debug)]
pub struct Found {
    pub(crate) processed_at: i64,
    pub(crate) expires_at: Option<i64>,
    pub(crate) has_fingerprint: bool,
    pub(crate) result: Option<Vec<u8>>,
}
