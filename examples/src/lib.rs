//! What the two programs share. The handlers, which are what to copy, are in
//! `src/bin/quickstart.rs` and `src/bin/webhooks.rs`.

pub mod crash;
pub mod database;
pub mod deliveries;
pub mod options;
pub mod report;
pub mod stop;
