//! Keys: what a value's text is, and which values may stand in a key unasserted.
//!
//! The text form is a public contract, written down with test vectors in `docs/keys.md`.
//! [`KeyWriter`] alone puts characters into a text, so that every text stays within
//! `A-Z a-z 0-9 - . _ : % / ( ) ~ #`, whoever implements [`KeyText`]: stores rely on it.

mod bounds;
mod builder;
mod calendar;
mod fingerprint;
mod foreign;
mod part;
mod refused;
mod std_types;
mod writer;

pub use self::{
    bounds::{PartOption, TextOption},
    builder::{Key, KeyBuilder, at, formerly},
    fingerprint::{finish_fingerprint, new_fingerprint},
    part::{
        nullable_part, nullable_stable_part, part, required_part, required_stable_part, stable_part,
    },
    writer::KeyWriter,
};

pub(crate) use self::fingerprint::Fingerprint;

use self::bounds::{Part, Text};

/// Has a canonical text: equal values have one text, different values of a type never share it.
///
/// This is what `stable(…)` asks of a value. Deriving [`KeyPart`] implements both traits.
/// Implement this one by hand where a type has a canonical text of its own; [`KeyWriter`] encodes
/// whatever it is given, so that no implementation can make a text that is not a key.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{KeyPart, KeyText, KeyWriter};
///
/// /// An order number that is printed in groups, `20-0042`, and stored as one integer.
/// struct OrderNumber {
///     year: u8,
///     serial: u32,
/// }
///
/// impl KeyText for OrderNumber {
///     fn write_key(&self, writer: &mut KeyWriter) {
///         writer.push_display(format_args!("{:02}-{:04}", self.year, self.serial));
///     }
/// }
///
/// impl KeyPart for OrderNumber {}
///
/// assert_eq!(KeyWriter::text_of(&OrderNumber { year: 20, serial: 42 }), "20-0042");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of an idempotency key",
    label = "not a key part",
    note = "derive `idempotent_runtime::KeyPart` for it, or name one of its fields",
    note = "the types of chrono, rust_decimal, time and ulid are key parts with the feature of that name; of another crate's type `stable(value.to_string())` is one"
)]
pub trait KeyText {
    /// Writes this value's text.
    ///
    /// Each `push` of the writer makes one element, and elements join with `/`. A value with a
    /// varying number of elements belongs into [`KeyWriter::push_variant`], which says where it
    /// ends; otherwise two neighbours of that type could trade elements and share a text.
    fn write_key(&self, writer: &mut KeyWriter);
}

/// May be part of a key unasserted: the same message carries the same value at every delivery.
///
/// Implemented for integers, `bool`, `char`, strings, byte strings, UUIDs, civil dates, IP
/// addresses, references and smart pointers to them, and tuples of them. Derive it for newtypes,
/// structs and enums. Timestamps and floats have a text but are not key parts: they need
/// `stable(…)`. An `Option` needs `required(…)` or `nullable(…)`.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{KeyPart, KeyWriter};
///
/// fn text(part: &impl KeyPart) -> String {
///     KeyWriter::text_of(part)
/// }
///
/// assert_eq!(text(&(42, "EMAIL")), "42/EMAIL");
/// assert_eq!(text(&"a/b c"), "a%2Fb%20c");
/// ```
///
/// # Example: a clock is refused
///
/// ```compile_fail
/// fn text(part: &impl idempotent_runtime::KeyPart) {}
///
/// text(&std::time::SystemTime::now()); // a timestamp is not a stable idempotency key
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of an idempotency key",
    label = "not a key part",
    note = "derive `idempotent_runtime::KeyPart` for it, or name one of its fields",
    note = "the types of chrono, rust_decimal, time and ulid are key parts with the feature of that name; of another crate's type `stable(value.to_string())` is one"
)]
pub trait KeyPart: KeyText {}
