//! What the driver reads: one line each, flushed at its end.

use std::fmt::Display;

use crate::audit::Findings;

/// All up to this place in the order are confirmed.
pub(crate) fn confirmed(place: usize) {
    println!("confirmed {place}");
}

/// Entries that were posted, were posted before, or are to come again.
pub(crate) fn handled(now: usize, before: usize, not: usize) {
    println!("handled {now} {before} {not}");
}

/// Keys that are gone.
pub(crate) fn pruned(rows: u64) {
    println!("pruned {rows}");
}

/// What the storm did to us; it passes.
pub(crate) fn trouble(error: impl Display) {
    println!("trouble {}", error.to_string().replace('\n', " "));
}

/// What the audit has found.
pub(crate) fn audited(findings: &Findings) {
    let Findings {
        lost,
        doubled,
        postings,
        keys,
        cents,
        expected_cents,
    } = findings;
    println!("audited {lost} {doubled} {postings} {keys} {cents} {expected_cents}");
}
