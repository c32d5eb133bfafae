//! What the driver reads: one line each, flushed at its end.

use std::fmt::{Arguments, Display};
use std::io::{self, Write as _};
use std::process;

use crate::audit::Findings;

/// All up to this place in the order are confirmed.
pub(crate) fn confirmed(place: usize) {
    line(format_args!("confirmed {place}"));
}

/// How many entries were posted, were posted before, and are to come again.
pub(crate) fn handled(now: usize, before: usize, not: usize) {
    line(format_args!("handled {now} {before} {not}"));
}

/// How many keys are gone.
pub(crate) fn pruned(rows: u64) {
    line(format_args!("pruned {rows}"));
}

/// What the storm did to us; it passes.
pub(crate) fn trouble(error: impl Display) {
    let error = error.to_string().replace('\n', " ");
    line(format_args!("trouble {error}"));
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
    line(format_args!(
        "audited {lost} {doubled} {postings} {keys} {cents} {expected_cents}"
    ));
}

fn line(text: Arguments) {
    if writeln!(io::stdout(), "{text}").is_err() {
        // The driver is gone.
        process::exit(0);
    }
}
