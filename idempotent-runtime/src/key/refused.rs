//! Types that are refused, each family in its own words.
//!
//! Implementing the trait under a bound that never holds makes rustc blame that bound, and print
//! its message, wherever the type occurs: behind an alias, in a wrapper, as a field. The lifetime
//! in [`Unasserted`] keeps rustc from rejecting the bound right here as trivially false.

use core::marker::PhantomData;
use std::{
    collections::{HashMap, HashSet},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use super::{KeyPart, KeyText, KeyWriter, calendar::Timestamp};

/// The policy of a key part; nothing is allowed by it.
pub struct Unasserted<'a>(PhantomData<&'a ()>);

#[diagnostic::on_unimplemented(
    message = "a timestamp is not a stable idempotency key",
    label = "may change with every delivery",
    note = "use the message's id; if the producer sets this value once, write `stable(...)`, or `#[key(stable)]` on a field"
)]
pub trait AllowsTimestamps {}

#[diagnostic::on_unimplemented(
    message = "a float is not a stable idempotency key",
    label = "equal amounts can differ in the last digit",
    note = "use the message's id, or for an amount an integer of the smallest unit; if the value is never computed again, write `stable(...)`, or `#[key(stable)]` on a field"
)]
pub trait AllowsFloats {}

#[diagnostic::on_unimplemented(
    message = "an `Instant` cannot be part of an idempotency key",
    label = "means nothing to another process",
    note = "use the message's id"
)]
pub trait AllowsInstants {}

#[diagnostic::on_unimplemented(
    message = "a hash map or hash set cannot be part of an idempotency key",
    label = "its order changes from run to run",
    note = "use the message's id, or name one of its entries"
)]
pub trait AllowsUnordered {}

#[diagnostic::on_unimplemented(
    message = "an `Option` in a key must say what `None` means",
    label = "may be missing",
    note = "in the key, write `required(...)` around it if its absence is an error, `nullable(...)` if all messages without it are one; on a field `#[key(required)]` or `#[key(nullable)]`; flatten an `Option` of an `Option`"
)]
pub trait AllowsOptions {}

// Written out: rustc quotes the implementation, and a macro's would tell the reader nothing.
impl KeyPart for SystemTime where for<'a> Unasserted<'a>: AllowsTimestamps {}

impl KeyText for SystemTime {
    fn write_key(&self, writer: &mut KeyWriter) {
        writer.push_display(match self.duration_since(UNIX_EPOCH) {
            Ok(after) => Timestamp::after_epoch(after),
            Err(before) => Timestamp::before_epoch(before.duration()),
        });
    }
}

impl KeyPart for f32 where for<'a> Unasserted<'a>: AllowsFloats {}

impl KeyPart for f64 where for<'a> Unasserted<'a>: AllowsFloats {}

macro_rules! floats {
    ($($type:ty),*) => {$(
        impl KeyText for $type {
            fn write_key(&self, writer: &mut KeyWriter) {
                // -0.0 equals 0.0, and the sum of -0.0 and 0.0 is 0.0; `Display` writes the
                // shortest digits that read back as the same number, and one `NaN` for all.
                writer.push_display(self + 0.0);
            }
        }
    )*};
}

floats!(f32, f64);

impl KeyPart for Instant where for<'a> Unasserted<'a>: AllowsInstants {}

impl KeyText for Instant
where
    for<'a> Unasserted<'a>: AllowsInstants,
{
    fn write_key(&self, _: &mut KeyWriter) {}
}

impl<K, V, S> KeyPart for HashMap<K, V, S> where for<'a> Unasserted<'a>: AllowsUnordered {}

impl<K, V, S> KeyText for HashMap<K, V, S>
where
    for<'a> Unasserted<'a>: AllowsUnordered,
{
    fn write_key(&self, _: &mut KeyWriter) {}
}

impl<T, S> KeyPart for HashSet<T, S> where for<'a> Unasserted<'a>: AllowsUnordered {}

impl<T, S> KeyText for HashSet<T, S>
where
    for<'a> Unasserted<'a>: AllowsUnordered,
{
    fn write_key(&self, _: &mut KeyWriter) {}
}

impl<T> KeyPart for Option<T> where for<'a> Unasserted<'a>: AllowsOptions {}

impl<T> KeyText for Option<T>
where
    for<'a> Unasserted<'a>: AllowsOptions,
{
    fn write_key(&self, _: &mut KeyWriter) {}
}
