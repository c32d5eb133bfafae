//! One conformance suite, for every database and both guards.
//!
//! Tests of a database whose server is not given are listed as ignored, with
//! the reason: `cargo xtask test` finds or starts the servers.

#[macro_use]
mod suite;

mod backstop;
mod backstop_traps;
mod batches;
mod busy;
mod check_server;
mod claims;
mod classification;
mod concurrency;
mod crash;
mod crash_points;
mod cut_off;
mod errors;
mod every_poll;
mod failures;
mod fingerprint;
mod hidden_rows;
mod isolation;
#[path = "../keys/mod.rs"]
mod keys;
mod lost_commit;
mod mariadb_facts;
mod migrating;
mod misdeeds;
mod observability;
mod old_snapshots;
mod one_transaction;
mod plans;
mod privileges;
mod pruning;
mod renames;
mod replay;
mod restarts;
mod retention;
mod round_trips;
mod scopes;
mod table;
mod transact;
