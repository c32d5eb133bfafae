//! Idempotent consumers on sqlx.

mod attempts;
mod claim;
mod disposition;
mod error;
mod forget;
mod handler;
mod key;
mod outcome;
mod retry;
mod store;
mod table;
mod transact;

pub use attempts::{Attempts, Isolation};
pub use claim::Claim;
pub use disposition::{Disposition, Permanent, disposition};
pub use error::Error;
/// Derives [`KeyText`] and [`KeyPart`](trait@KeyPart).
pub use idempotent_macros::KeyPart;
pub use idempotent_macros::idempotent;
pub use key::{KeyPart, KeyText, KeyWriter};
pub use outcome::Outcome;
pub use sqlx;
pub use store::Store;
pub use table::{Table, migrate, schema_sql, verify_schema};

/// What the macros of this crate expand to. Not part of the public API: any
/// release may change it.
#[doc(hidden)]
pub mod __private {
    pub use crate::attempts::IntoAttempts;
    pub use crate::claim::{Claimed, bound, claim, finish, transaction};
    pub use crate::handler::{
        Frame, Guard, Handler, HandlerError, HandlerResult, finish_key, frame, hint, new_key,
        unclaimed,
    };
    pub use crate::key::{
        Key, KeyBuilder, PartOption, TextOption, field, nullable_field, nullable_part,
        nullable_stable_field, nullable_stable_part, part, required_field, required_part,
        required_stable_field, required_stable_part, stable_field, stable_part,
    };
    pub use crate::retry::{Probe, ViaDeref, ViaDerefSync, ViaError, ViaNothing};
    pub use crate::transact::{
        Lease, Run, Settled, after_begin, after_commit, after_handler, begin, commit, lease,
        release, release_after, roll_back, run, settled,
    };
}
