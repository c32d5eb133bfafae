//! What `#[derive(KeyPart)]` calls for a field: functions, so that rustc names the bound at it.

use super::{KeyWriter, Part, PartOption, Text, TextOption};

/// A plain field.
pub fn field<T: Part + ?Sized>(writer: &mut KeyWriter, value: &T) {
    writer.push(value);
}

/// `#[key(stable)]`.
pub fn stable_field<T: Text + ?Sized>(writer: &mut KeyWriter, value: &T) {
    writer.push(value);
}

/// `#[key(required)]`.
pub fn required_field<O: PartOption + ?Sized>(writer: &mut KeyWriter, value: &O) {
    value.push_required(writer);
}

/// `#[key(required, stable)]`.
pub fn required_stable_field<O: TextOption + ?Sized>(writer: &mut KeyWriter, value: &O) {
    value.push_required(writer);
}

/// `#[key(nullable)]`.
pub fn nullable_field<O: PartOption + ?Sized>(writer: &mut KeyWriter, value: &O) {
    value.push_nullable(writer);
}

/// `#[key(nullable, stable)]`.
pub fn nullable_stable_field<O: TextOption + ?Sized>(writer: &mut KeyWriter, value: &O) {
    value.push_nullable(writer);
}
