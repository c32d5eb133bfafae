//! What a person sees while a storm lasts.

use std::time::{Duration, Instant};

use crate::chaos::storm::Storm;
use crate::chaos::tally::Tally;

/// How often there is a line.
const EVERY: Duration = Duration::from_secs(5);

pub(super) struct Progress {
    published: u64,
    start: Instant,
    next: Instant,
}

impl Progress {
    pub(super) fn of(storm: &Storm) -> Self {
        let start = Instant::now();
        Self {
            published: storm.published(),
            start,
            next: start + EVERY,
        }
    }

    pub(super) fn took(&self) -> Duration {
        self.start.elapsed()
    }

    pub(super) fn show(&mut self, confirmed: u64, tally: &Tally) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + EVERY;
        let percent = confirmed * 100 / self.published.max(1);
        let of = self.published;
        eprintln!(
            "{percent:3} %: {confirmed} of {of} messages confirmed, {}",
            tally.so_far()
        );
    }
}
