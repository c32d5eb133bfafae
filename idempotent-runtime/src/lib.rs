//! Idempotent consumers on [sqlx]: a message may arrive twice, its effect must not. The message's
//! key is inserted **inside the transaction that the handler receives**, so that key and effect are
//! committed together or not at all.
//!
//! ```
//! # #[cfg(feature = "sqlite")] mod example {
//! use idempotent_runtime::{Outcome, idempotent, migrate, transact};
//! use sqlx::sqlite::{Sqlite, SqlitePoolOptions};
//! use sqlx::Transaction;
//!
//! /// Once per event and channel: an event goes out by e-mail and by push, each once.
//! #[idempotent(key = "event_id, channel")]
//! async fn notify(
//!     tx: &mut Transaction<'_, Sqlite>,
//!     event_id: i64,
//!     channel: &str,
//! ) -> sqlx::Result<()> {
//!     sqlx::query("INSERT INTO notifications VALUES (?, ?)")
//!         .bind(event_id)
//!         .bind(channel)
//!         .execute(&mut **tx)
//!         .await?;
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # pub async fn main() -> sqlx::Result<()> {
//! let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
//! sqlx::query("CREATE TABLE notifications (event_id INTEGER, channel TEXT)").execute(&pool).await?;
//! migrate(&pool).await?;
//!
//! assert_eq!(transact!(&pool, tx => notify(tx, 7, "email")).await?, Outcome::Processed(()));
//! assert_eq!(transact!(&pool, tx => notify(tx, 7, "push")).await?, Outcome::Processed(()));
//! assert_eq!(transact!(&pool, tx => notify(tx, 7, "email")).await?, Outcome::Duplicate);
//!
//! let sent: i64 = sqlx::query_scalar("SELECT count(*) FROM notifications").fetch_one(&pool).await?;
//! assert_eq!(sent, 2);
//! # Ok(())
//! # }
//! # }
//! # fn main() {
//! #     #[cfg(feature = "sqlite")] example::main().unwrap();
//! # }
//! ```
//!
//! # Vocabulary
//!
//! - *Key*: what makes two deliveries the same message. It has a [text form](KeyText) that is a
//!   public contract.
//! - *Scope*: the namespace of a handler's keys.
//! - *Claim*: the insertion of the key, the first thing done with it.
//! - *Guard*: what proves, after the body, that the claim's transaction is still alive: `verify`, one
//!   statement, or `savepoint`, around claim and body.
//! - *Duplicate*: a delivery whose key is committed.
//! - *Backstop*: a unique constraint of the key's own grain, on the table in which the effect stands; see
//!   [`verify_backstop`].
//! - *Pruning*: deleting keys whose `retain` is over, with a [`Pruner`]. A duplicate that comes after
//!   that runs again.
//!
//! # Guarantees
//!
//! - If the transaction commits: the key is there ⇔ the handler's rows are there ⇔ the handler
//!   returned `Ok`. With guard `verify` this asks that the caller roll back, or drop the transaction,
//!   on `Err` or when it cuts the handler off, as [`transact!`] does; `savepoint` asks nothing.
//! - `Processed` or `Duplicate` is never returned unless the key is committed, or will be if this
//!   transaction commits.
//! - In doubt: `Err`, so that the broker redelivers.
//! - Nothing outlives the transaction.
//!
//! # What it does not do
//!
//! It does not order or deliver messages, and it cannot take back effects outside the database: give
//! those a stable key with [`Claim::derive`].
//!
//! # Features
//!
//! | feature | brings |
//! | --- | --- |
//! | `postgres`, `mysql` (also for MariaDB), `sqlite` | the store of that database |
//! | `replay` | `replay`: results stored as JSON |
//! | `metrics` | counters and a histogram of decisions, through the facade of that name |
//! | `handlers` | the list of all handlers, and a test of their scopes and keys |
//! | `chrono`, `rust_decimal`, `time`, `ulid` | key parts of that crate's types |
//!
//! # Minimum supported Rust version
//!
//! 1.94, that of sqlx 0.9. It rises with a minor release only.

#![cfg_attr(
    not(any(feature = "mysql", feature = "postgres", feature = "sqlite")),
    allow(dead_code, reason = "without a database nothing claims")
)]

mod attempts;
mod backstop;
mod batch;
mod claim;
mod disposition;
mod error;
mod frame;
mod handler;
#[cfg(feature = "handlers")]
pub mod handlers;
mod key;
mod observe;
mod outcome;
mod processed;
mod prune;
mod replay;
mod retry;
mod session;
mod store;
mod table;
mod transact;

pub use attempts::{Attempts, Isolation};
pub use backstop::verify_backstop;
pub use claim::Claim;
pub use disposition::{Disposition, Permanent, disposition};
pub use error::Error;
#[cfg(feature = "handlers")]
pub use handlers::handlers;
pub use idempotent_macros::{KeyPart, idempotent};
pub use key::{KeyPart, KeyText, KeyWriter};
pub use outcome::{Batch, Outcome, Replay, Verdict};
pub use processed::{Processed, forget, lookup};
pub use prune::{Pruned, Pruner, PrunerTask, pruner};
pub use sqlx;
pub use store::{ManyWriters, Store};
pub use table::{Table, migrate, schema_sql, verify_schema};

/// The readme's example compiles.
#[cfg(all(doctest, feature = "postgres"))]
#[doc = include_str!("../../README.md")]
mod readme {}

/// What the macros of this crate expand to. Not part of the public API: any release may change it.
#[doc(hidden)]
pub mod __private {
    pub use crate::__register as register;
    pub use crate::attempts::IntoAttempts;
    pub use crate::batch::{
        ClaimedBatch, Keys, claim_batch, finish_batch, new_keys, push_key, transaction_of_batch,
    };
    pub use crate::claim::{
        Claimed, HandlerTransaction, bound, claim, claim_or_fail, finish, transaction,
        transaction_of,
    };
    pub use crate::frame::{
        BatchFrame, Frame, HandlerError, HandlerResult, batch_frame, frame, hint, replay_frame,
        unclaimed, unclaimed_batch, unclaimed_replay,
    };
    pub use crate::handler::{Busy, Guard, Handler, Options, finish_key, located, new_key};
    #[cfg(feature = "handlers")]
    pub use crate::handlers::Written;
    pub use crate::key::{
        Key, KeyBuilder, PartOption, TextOption, at, finish_fingerprint, formerly, new_fingerprint,
        nullable_part, nullable_stable_part, part, required_part, required_stable_part,
        stable_part,
    };
    pub use crate::retry::{Probe, ViaDeref, ViaDerefSync, ViaError, ViaNothing};
    pub use crate::transact::{
        Lease, Run, Settled, after_begin, after_commit, after_error, begin, commit, lease, release,
        release_after, roll_back, run, settled,
    };
    #[cfg(feature = "handlers")]
    pub use inventory;
}
