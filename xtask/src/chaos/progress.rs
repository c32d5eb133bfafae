//! What a person sees while a storm lasts.

use std::time::{Duration, Instant};

use crate::chaos::tally::Tally;

/// How often there is a line.
const EVERY: Duration = Duration::from_secs(5);

pub(super) struct Progress {
    start: Instant,
    next: Instant,
}

impl Progress {
    pub(super) fn new() -> Self {
        let start = Instant::now();
        Self {
            start,
            next: start + EVERY,
        }
    }

    pub(super) fn took(&self) -> Duration {
        self.start.elapsed()
    }

    pub(super) fn show(&mut self, confirmed: u64, published: u64, tally: &Tally) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + EVERY;
        eprintln!(
            "{:3} %: {confirmed} of {published} messages confirmed, {}",
            confirmed * 100 / published.max(1),
            tally.so_far()
        );
    }
}
