//! Services that people copy: what they share, and what is not about a broker.
//!
//! A bank tells its customers of transfers, by e-mail and by push. Each program in `src/bin` takes
//! the same notices from another broker, and hands them to the same [`notify`].

#[cfg(feature = "rabbitmq")]
pub mod coarse;
pub mod database;
pub mod hold;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "http")]
pub mod idempotency_key;
pub mod notify;
pub mod options;
#[cfg(feature = "rabbitmq")]
pub mod rabbit;
pub mod report;
#[cfg(feature = "http")]
pub mod signature;
pub mod stop;
