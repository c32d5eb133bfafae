//! What the parts of a key and the fields of a derived type must be.
//!
//! For an unfit type rustc prints the words of the bound that fails, and beside them the other
//! implementations of the bound that was asked for. `KeyPart` asked for directly, it says of a
//! refused type that it does implement `KeyPart`; asked through these traits, it says nothing.

use super::{KeyPart, KeyText, KeyWriter};

/// [`KeyText`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of an idempotency key",
    label = "not a key part",
    note = "derive `idempotent_runtime::KeyPart` for it, or name one of its fields",
    note = "the types of chrono, rust_decimal, time and ulid are key parts with the feature of that name; of another crate's type `stable(value.to_string())` is one"
)]
pub trait Text: KeyText {}

impl<T: KeyText + ?Sized> Text for T {}

/// [`KeyPart`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of an idempotency key",
    label = "not a key part",
    note = "derive `idempotent_runtime::KeyPart` for it, or name one of its fields",
    note = "the types of chrono, rust_decimal, time and ulid are key parts with the feature of that name; of another crate's type `stable(value.to_string())` is one"
)]
pub trait Part: KeyPart {}

impl<T: KeyPart + ?Sized> Part for T {}

/// An `Option` of a `Text`, or a reference to one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an `Option`",
    label = "never missing",
    note = "write it without `required` or `nullable`"
)]
pub trait TextOption {
    /// Pushes what is there, or `~`.
    fn push_nullable(&self, writer: &mut KeyWriter);

    /// Pushes what is there, or makes the key missing.
    fn push_required(&self, writer: &mut KeyWriter);
}

/// An `Option` of a `Part`, or a reference to one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an `Option`",
    label = "never missing",
    note = "write it without `required` or `nullable`"
)]
pub trait PartOption: TextOption {}

impl<T: Text> TextOption for Option<T> {
    fn push_nullable(&self, writer: &mut KeyWriter) {
        writer.push_nullable(self.as_ref());
    }

    fn push_required(&self, writer: &mut KeyWriter) {
        writer.push_required(self.as_ref());
    }
}

impl<T: Part> PartOption for Option<T> {}

impl<O: TextOption + ?Sized> TextOption for &O {
    fn push_nullable(&self, writer: &mut KeyWriter) {
        O::push_nullable(self, writer);
    }

    fn push_required(&self, writer: &mut KeyWriter) {
        O::push_required(self, writer);
    }
}

impl<O: PartOption + ?Sized> PartOption for &O {}

impl<O: TextOption + ?Sized> TextOption for &mut O {
    fn push_nullable(&self, writer: &mut KeyWriter) {
        O::push_nullable(self, writer);
    }

    fn push_required(&self, writer: &mut KeyWriter) {
        O::push_required(self, writer);
    }
}

impl<O: PartOption + ?Sized> PartOption for &mut O {}
