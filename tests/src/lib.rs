//! What the tests stand on: a fresh database for each, futures that are cut
//! off, effects that are counted twice, and a wire that can be watched and cut.

mod call;
mod cut;
mod deliveries;
mod double;
mod engine;
mod fresh;
mod guarded;
pub mod memory;
mod on_paid;
pub mod wire;

pub use call::Call;
pub use cut::{CutAt, Moment, at_every_poll, caught};
pub use deliveries::{
    Batched, BatchedUnderSavepoint, Busy, BusyUnderSavepoint, Delivery, Known, Renamed,
    RenamedUnderSavepoint,
};
pub use double::{Act, Double};
pub use engine::{Engine, Kind, Statement, until};
pub use fresh::{Fresh, in_fresh_database};
pub use guarded::{
    AppError, Guarded, Preparing, PreparingUnderSavepoint, Recorder, Replayed,
    ReplayedUnderSavepoint, Savepoint, Verify,
};
pub use on_paid::on_paid;
pub use wire::{Proxy, Refusal, Wired};

/// The programs on the page about errors compile, or do not, as it says.
#[cfg(doctest)]
#[doc = include_str!("../../docs/errors.md")]
mod errors {}

/// Says whether the long forms of the tests are wanted.
#[must_use]
pub fn is_full() -> bool {
    std::env::var_os("IDEMPOTENT_FULL").is_some_and(|value| !value.is_empty())
}
