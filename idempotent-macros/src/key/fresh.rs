//! Calls that make another value every time, whatever they are called on.

use syn::ext::IdentExt;
use syn::{Ident, Path};

const FRESH: [&str; 23] = [
    "elapsed",
    "gen",
    "gen_bool",
    "gen_range",
    "gen_ratio",
    "generate",
    "nanoid",
    "new_v1",
    "new_v4",
    "new_v6",
    "new_v7",
    "now",
    "now_local",
    "now_utc",
    "now_v1",
    "now_v6",
    "now_v7",
    "random",
    "random_bool",
    "random_iter",
    "random_range",
    "sample",
    "today",
];

/// Words in the names of functions that take nothing and make an id.
const FRESH_WORDS: [&str; 7] = [
    "fresh",
    "gen",
    "generate",
    "generated",
    "now",
    "rand",
    "random",
];

pub(super) fn is_fresh(name: &Ident) -> bool {
    FRESH.contains(&name.unraw().to_string().as_str())
}

/// `Uuid::new_v4`, `Ulid::new`
pub(super) fn is_fresh_path(path: &Path) -> bool {
    let mut names = path.segments.iter().rev().map(|segment| &segment.ident);
    match (names.next(), names.next()) {
        (Some(name), Some(ty)) => is_fresh(name) || ty == "Ulid" && name == "new",
        (Some(name), None) => is_fresh(name),
        (None, _) => false,
    }
}

/// The function that a default calls, if it makes a fresh value: also one of the
/// user's own, as `random_id` and `new_order_id`.
pub(crate) fn makes_fresh_by_default(path: &Path) -> bool {
    let Some(last) = path.segments.last() else {
        return false;
    };
    let name = last.ident.unraw().to_string();
    is_fresh_path(path)
        || name.starts_with("new_")
        || name.split('_').any(|word| FRESH_WORDS.contains(&word))
}
