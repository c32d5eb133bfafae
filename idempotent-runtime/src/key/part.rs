//! What the attribute calls for a part of the key, and the derive for a field: functions, so that
//! rustc names the bound at it.

use super::{KeyWriter, Part, PartOption, Text, TextOption};

/// A plain one.
pub fn part<T: Part + ?Sized>(writer: &mut KeyWriter, value: &T) {
    writer.push(value);
}

/// `stable(…)`, `#[key(stable)]`.
pub fn stable_part<T: Text + ?Sized>(writer: &mut KeyWriter, value: &T) {
    writer.push(value);
}

/// `required(…)`, `#[key(required)]`.
pub fn required_part<O: PartOption + ?Sized>(writer: &mut KeyWriter, value: &O) {
    value.push_required(writer);
}

/// `stable(required(…))`, `#[key(required, stable)]`.
pub fn required_stable_part<O: TextOption + ?Sized>(writer: &mut KeyWriter, value: &O) {
    value.push_required(writer);
}

/// `nullable(…)`, `#[key(nullable)]`.
pub fn nullable_part<O: PartOption + ?Sized>(writer: &mut KeyWriter, value: &O) {
    value.push_nullable(writer);
}

/// `stable(nullable(…))`, `#[key(nullable, stable)]`.
pub fn nullable_stable_part<O: TextOption + ?Sized>(writer: &mut KeyWriter, value: &O) {
    value.push_nullable(writer);
}
