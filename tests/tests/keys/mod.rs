//! The text of keys: the contract of `docs/keys.md`, and that no two values meet.

mod derived;
mod injective;
mod missing;
mod properties;
mod shape;
mod types;
mod vectors;

use idempotent_runtime::{
    __private::{Key, KeyBuilder, at, stable_part},
    KeyText,
};

/// The key that consists of `value` alone.
fn key(value: &(impl KeyText + ?Sized)) -> Key {
    let mut builder = KeyBuilder::new("test");
    stable_part(at(&mut builder, "value"), value);
    builder.finish()
}

/// Its text.
fn text(value: &(impl KeyText + ?Sized)) -> String {
    key(value).text().to_owned()
}

/// Whether the long run is asked for, with `IDEMPOTENT_FULL=1`.
fn full() -> bool {
    std::env::var_os("IDEMPOTENT_FULL").is_some_and(|value| value == "1")
}
