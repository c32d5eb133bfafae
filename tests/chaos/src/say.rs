//! What the driver reads: one line each, flushed at its end.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process;

use xtask::chaos::{Handled, Said};

pub(crate) fn say(said: &Said) {
    if writeln!(io::stdout(), "{said}").is_err() {
        // The driver is gone.
        process::exit(0);
    }
}

/// All up to this place in the order are confirmed.
pub(crate) fn confirmed(place: usize) {
    say(&Said::Confirmed(count(place)));
}

/// How many entries were posted, were posted before, and are to come again.
pub(crate) fn handled(now: usize, before: usize, not: usize) {
    say(&Said::Handled(Handled {
        processed: count(now),
        duplicates: count(before),
        again: count(not),
    }));
}

/// What the storm did to us; it passes.
pub(crate) fn trouble(error: impl Display) {
    say(&Said::Trouble(error.to_string()));
}

fn count(number: usize) -> u64 {
    number.try_into().unwrap_or(u64::MAX)
}
