//! The programs of this package as they are started, against real servers.

#![forbid(unsafe_code)]

mod database;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "nats")]
mod nats;
#[cfg(any(feature = "nats", feature = "rabbitmq"))]
mod proxy;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
mod running;
#[cfg(feature = "sqs")]
mod sqs;
