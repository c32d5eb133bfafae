//! The attribute and the derive of `idempotent-runtime`.

#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod args;
mod derive;
mod diagnostics;
mod emit;
mod expand;
mod handler;
mod key;
mod listing;
mod mistakes;
mod nesting;
mod output;
mod paths;
mod pieces;
mod plan;
mod rebind;
#[cfg(test)]
mod tests;
mod transaction;
mod value;

use proc_macro::TokenStream;

use crate::listing::Listing;

#[doc = include_str!("idempotent.md")]
#[proc_macro_attribute]
pub fn idempotent(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(args.into(), &item.into(), Listing::OF_BUILD).into()
}

/// Implements `KeyPart` and `KeyText` for a struct or an enum.
///
/// The text of a struct is that of its fields, in order and joined with `/`; so a newtype has the
/// text of what it wraps. A variant is `Name`, or `Name(…)` around its fields.
///
/// Every field must be a `KeyPart` itself; one that is not is reported at the field. In a generic
/// type the fields that mention a type parameter become bounds of the implementation instead.
///
/// The names of fields that count are judged as those in `#[idempotent]`: `sent_at: i64` is refused.
/// So is a random default, `#[serde(default = "Uuid::new_v4")]`, which gives a message without its id
/// another one at every delivery.
///
/// A field of the type `PhantomData` without a mark is left out, and a parameter that stands only
/// there needs no bound.
///
/// # Which fields count
///
/// A bare `#[key]` marks the fields that count; where no field of a struct or variant has one, all
/// do. An argument, as in `#[key(nullable)]`, is no mark for its neighbours: without a bare `#[key]`
/// they count as well. A field too many runs a message twice, a field too few loses one.
///
/// | on | attribute | meaning |
/// | --- | --- | --- |
/// | a field | `#[key]` | only marked fields, and those with an argument, count |
/// | a field | `#[key(nullable)]` | an `Option` whose `None` is a value of its own |
/// | a field | `#[key(required)]` | an `Option` whose absence makes the key missing |
/// | a field | `#[key(stable)]` | asserts that the value is the same on every redelivery, for timestamps, floats and names like `sent_at` |
/// | a variant | `#[key(name = "…")]` | its text, where that must outlive a rename |
/// | the type | `#[key(transparent)]` | makes sure that one field counts, whose text is that of the type |
/// | the type | `#[key(crate = path)]` | where `idempotent_runtime` is, if not under its own name |
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{KeyPart, KeyWriter};
///
/// #[derive(KeyPart)]
/// struct OrderId(u64);
///
/// #[derive(KeyPart)]
/// enum Channel {
///     Email,
///     #[key(name = "Push")]
///     PushNotification { device: u32 },
/// }
///
/// #[derive(KeyPart)]
/// struct Notice {
///     #[key]
///     order: OrderId,
///     #[key]
///     channel: Channel,
///     text: String,
/// }
///
/// let notice = |channel| Notice { order: OrderId(42), channel, text: "paid".to_owned() };
/// assert_eq!(KeyWriter::text_of(&notice(Channel::Email)), "42/Email");
/// assert_eq!(
///     KeyWriter::text_of(&notice(Channel::PushNotification { device: 7 })),
///     "42/Push(7)",
/// );
/// ```
///
/// # Example: a field that is not a key part
///
/// ```compile_fail
/// use idempotent_runtime::KeyPart;
///
/// #[derive(KeyPart)]
/// struct Payment {
///     id: u64,
///     received: std::time::SystemTime, // a timestamp is not a stable idempotency key
/// }
/// ```
///
/// Mark the fields that count, so that `received` does not:
///
/// ```
/// use idempotent_runtime::KeyPart;
///
/// #[derive(KeyPart)]
/// struct Payment {
///     #[key]
///     id: u64,
///     received: std::time::SystemTime,
/// }
/// ```
#[proc_macro_derive(KeyPart, attributes(key))]
pub fn derive_key_part(item: TokenStream) -> TokenStream {
    derive::expand(item.into()).into()
}
