//! The list of handlers, and the lock file, of a program with every kind of
//! handler. In `shared_scopes.rs`: one whose handlers share a scope.

#![forbid(unsafe_code)]
#![allow(
    clippy::needless_raw_string_hashes,
    reason = "expect-test chooses their number"
)]

mod kinds;
mod listed;
mod lock;
