//! Handlers that compile, each delivered twice to a database in memory.

#![allow(
    unused_variables,
    reason = "most handlers here are there for their signature"
)]

mod keys;
mod parameters;
mod receivers;
mod results;
mod send;

use idempotent_runtime::KeyPart;
use idempotent_tests::delivered;
use idempotent_tests::memory::{begin, key, pool};

#[derive(Clone, Debug)]
struct Msg {
    id: i64,
    channel: String,
}

#[derive(Clone, Copy, Debug, KeyPart)]
enum Channel {
    Email,
    Push,
}

#[derive(Debug, thiserror::Error)]
enum AppError {
    #[error(transparent)]
    Idempotent(#[from] idempotent_runtime::Error),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Number(#[from] std::num::ParseIntError),
}

fn msg() -> Msg {
    Msg {
        id: 7,
        channel: "3".to_owned(),
    }
}
