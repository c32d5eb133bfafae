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
