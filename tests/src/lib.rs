//! What the tests stand on: a fresh database for each, futures that are cut
//! off, effects that are counted twice, and a wire that can be watched and cut.

mod cut;
mod double;
mod engine;
mod fresh;
mod guarded;
pub mod memory;
mod on_paid;
mod proxy;

pub use cut::{CutAt, Moment, caught};
pub use double::{Act, Double};
pub use engine::{Engine, Kind, Statement, until};
pub use fresh::{Fresh, in_fresh_database};
pub use guarded::{
    AppError, Guarded, Recorder, Replayed, ReplayedUnderSavepoint, Savepoint, Verify,
};
pub use on_paid::on_paid;
pub use proxy::{Proxy, Refusal};

/// The programs on the page about errors compile, or do not, as it says.
#[cfg(doctest)]
#[doc = include_str!("../../docs/errors.md")]
mod errors {}

/// Says whether the long forms of the tests are wanted.
#[must_use]
pub fn is_full() -> bool {
    std::env::var_os("IDEMPOTENT_FULL").is_some_and(|value| !value.is_empty())
}
