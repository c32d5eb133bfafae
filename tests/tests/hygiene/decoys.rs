//! A module where every name that generated code might say means something
//! else.

#![no_implicit_prelude]
#![allow(
    dead_code,
    unused_macros,
    clippy::wrong_self_convention,
    reason = "decoys are there to be mistaken"
)]

use ::idempotent_runtime::{KeyPart, idempotent};
use ::sqlx::{Sqlite, Transaction};

mod core {}
mod std {}
mod alloc {}
mod sqlx {}
mod idempotent_runtime {}
mod __private {}

struct Result;
struct Option;
struct Ok;
struct Err;
struct Some;
struct None;
struct String;
struct Vec;
struct Box;
struct Pin;
struct Outcome;
struct Claim;
struct Handler;
struct Guard;
struct Error;

trait Send {}
trait Sync {}
trait Future {}
trait From {}
trait Into {}
trait Store {}

const HANDLER: u8 = 1;
static RESULT: u8 = 1;

macro_rules! concat {
    ($($any:tt)*) => {
        ::core::compile_error! { "a macro of the user's, not the one of core" }
    };
}
macro_rules! module_path {
    ($($any:tt)*) => {
        ::core::compile_error! { "a macro of the user's, not the one of core" }
    };
}

/// Methods that everything has.
trait Everything {
    fn as_ref(&self) {}
    fn await_(&self) {}
    fn claim(&self) {}
    fn clone(&self) {}
    fn deref(&self) {}
    fn execute(&self) {}
    fn fetch_optional(&self) {}
    fn finish(&self) {}
    fn from(&self) {}
    fn into(&self) {}
    fn into_future(&self) {}
    fn into_result(&self) {}
    fn key(&self) {}
    fn poll(&self) {}
    fn push(&self) {}
    fn to_owned(&self) {}
}

impl<T: ?::core::marker::Sized> Everything for T {}

#[derive(KeyPart)]
pub(super) struct Id(pub(super) i64);

pub(super) struct Msg {
    pub(super) id: Id,
    pub(super) parent: ::core::option::Option<i64>,
}

#[idempotent(key(msg.id, required(msg.parent)))]
pub(super) async fn free(
    tx: &mut Transaction<'_, Sqlite>,
    msg: &Msg,
) -> ::core::result::Result<u8, ::sqlx::Error> {
    ::sqlx::Executor::execute(&mut **tx, "SELECT 1").await?;
    if msg.id.0 < 0 {
        return ::core::result::Result::Err(::sqlx::Error::RowNotFound);
    }
    ::core::result::Result::Ok(HANDLER)
}

pub(super) struct Service;

impl Service {
    #[idempotent(key = "msg.id, nullable(msg.parent), stable(msg.id.0 + 1)", scope = "method", bind = claim)]
    pub(super) async fn method(
        &self,
        tx: &mut Transaction<'_, Sqlite>,
        mut msg: Msg,
    ) -> ::anyhow::Result<usize> {
        msg.id.0 += 1;
        ::sqlx::Executor::execute(&mut **tx, "SELECT 1").await?;
        ::core::result::Result::Ok(claim.key().len() + ::core::mem::size_of_val(&msg.id))
    }
}

type Alias = ::core::result::Result<u8, ::sqlx::Error>;

#[idempotent(
    key(id),
    scope = "alias",
    guard = "savepoint",
    table = "processed_messages"
)]
pub(super) async fn alias(_tx: &mut Transaction<'_, Sqlite>, id: i64) -> Alias {
    ::core::result::Result::Ok(RESULT)
}
