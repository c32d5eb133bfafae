//! What the tests of clusters stand on: clusters with the tables of the tests, a message that is
//! handled in every way that there is, a broker in memory, and the audit of what came of it.

mod audit;
mod broker;
mod galera;
mod pause;
mod replicated;
mod switch;
mod tables;
mod way;

pub use audit::Audit;
pub use broker::{Broker, consume};
pub use galera::{Nodes, on_galera};
pub use pause::paused_at;
pub use replicated::{Following, Replicated, on_replicated};
pub use tables::{effects, keys};
pub use way::{Way, without_a_key};
