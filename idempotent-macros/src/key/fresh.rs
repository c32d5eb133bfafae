//! Calls that make another value every time, whatever they are called on.

use syn::ext::IdentExt;
use syn::{Ident, Path};

use super::Instability;

const FRESH: [&str; 38] = [
    "cuid",
    "cuid2",
    "elapsed",
    "fetch_add",
    "fill_bytes",
    "fresh_id",
    "gen",
    "gen_bool",
    "gen_range",
    "gen_ratio",
    "generate",
    "generate_id",
    "nanoid",
    "new_id",
    "new_v1",
    "new_v4",
    "new_v6",
    "new_uuid",
    "new_v7",
    "next_id",
    "next_u32",
    "next_u64",
    "now",
    "now_local",
    "now_utc",
    "now_v1",
    "now_v6",
    "now_v7",
    "random",
    "random_bool",
    "random_id",
    "random_iter",
    "random_range",
    "sample",
    "thread_rng",
    "today",
    "unix_now",
    "utc_now",
];

/// Crates that make nothing else.
const FRESH_CRATES: [&str; 5] = ["fastrand", "getrandom", "nanoid", "rand", "rand_core"];

/// Types whose `new` makes another id every time.
const FRESH_TYPES: [&str; 4] = ["Ksuid", "ObjectId", "Ulid", "Xid"];

pub(super) fn is_fresh(name: &Ident) -> bool {
    FRESH.contains(&name.unraw().to_string().as_str())
}

/// `Uuid::new_v4`, `Ulid::new`, `fastrand::u64`
pub(super) fn is_fresh_path(path: &Path) -> bool {
    let is_one_of = |name: &Ident, names: &[&str]| names.iter().any(|known| name == known);
    let mut names = path.segments.iter().rev().map(|segment| &segment.ident);
    let is_fresh_name = match (names.next(), names.next()) {
        (Some(name), Some(ty)) => is_fresh(name) || name == "new" && is_one_of(ty, &FRESH_TYPES),
        (Some(name), None) => is_fresh(name),
        (None, _) => false,
    };
    let is_of_crate = path.segments.len() > 1
        && path
            .segments
            .first()
            .is_some_and(|first| is_one_of(&first.ident, &FRESH_CRATES));
    is_fresh_name || is_of_crate
}

/// The function that a default calls, if it makes a fresh value by its name.
pub(crate) fn makes_fresh_by_default(path: &Path) -> bool {
    let name = path
        .segments
        .last()
        .map(|last| last.ident.unraw().to_string());
    is_fresh_path(path) || name.is_some_and(|name| Instability::of(&name).is_some())
}
