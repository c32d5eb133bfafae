//! What a storm came to.

use std::fmt::{self, Display, Formatter};
use std::ops::AddAssign;
use std::time::Duration;

use crate::chaos::said::{Audited, Handled};
use crate::chaos::storm::Storm;
use crate::error::Error;

/// What a storm came to. Its text is the last line of `cargo xtask chaos`.
#[derive(Clone, Debug)]
pub struct Tally {
    storm: Storm,
    pub(super) took: Duration,
    pub(super) kills: u32,
    pub(super) restarts: u32,
    pub(super) pruned: u64,
    pub(super) handled: Handled,
    pub(super) audited: Audited,
}

impl Tally {
    pub(super) fn of(storm: &Storm) -> Self {
        Self {
            storm: *storm,
            took: Duration::ZERO,
            kills: 0,
            restarts: 0,
            pruned: 0,
            handled: Handled::default(),
            audited: Audited::default(),
        }
    }

    /// How many processes were killed.
    #[must_use]
    pub fn kills(&self) -> u32 {
        self.kills
    }

    /// How often a server was started again.
    #[must_use]
    pub fn restarts(&self) -> u32 {
        self.restarts
    }

    /// How many effects do not exist that should.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.audited.lost
    }

    /// How many effects exist that should not.
    #[must_use]
    pub fn doubled(&self) -> u64 {
        self.audited.doubled
    }

    /// Says what is wrong, if anything is.
    ///
    /// # Errors
    ///
    /// Effects are lost or doubled; sums or keys do not fit the effects; or the storm was none,
    /// since nothing came twice or nothing was pruned.
    pub fn judge(&self) -> Result<(), Error> {
        let Audited {
            lost,
            doubled,
            postings,
            keys,
            cents,
            expected_cents,
        } = self.audited;
        let complaint = if lost + doubled > 0 {
            format!("{lost} effects are lost, and {doubled} doubled")
        } else if cents != expected_cents {
            format!("the accounts hold {cents} cents, and should hold {expected_cents}")
        } else if keys != postings {
            format!("{postings} effects have {keys} keys")
        } else if self.handled.duplicates == 0 {
            "no message came twice".to_owned()
        } else if self.pruned == 0 {
            "nothing was pruned".to_owned()
        } else {
            return Ok(());
        };
        Err(Error::new(format!("{complaint}: {}", self.storm)))
    }

    pub(super) fn so_far(&self) -> String {
        let Handled {
            processed,
            duplicates,
            again,
        } = self.handled;
        let (kills, restarts, pruned) = (self.kills, self.restarts, self.pruned);
        format!(
            "{processed} deliveries processed, {duplicates} duplicates, {again} given back, \
             {pruned} keys pruned, {kills} kills, {restarts} restarts"
        )
    }

    pub(super) fn details(&self) -> String {
        let Audited {
            postings,
            keys,
            cents,
            expected_cents,
            ..
        } = self.audited;
        let seconds = self.took.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = self.storm.published() as f64 / seconds;
        format!(
            "{}\n{postings} effects, {keys} keys, {cents} cents of {expected_cents}; \
             {seconds:.1} s, {rate:.0} messages/s",
            self.so_far()
        )
    }
}

impl Display for Tally {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            storm,
            kills,
            restarts,
            ..
        } = self;
        let Audited { lost, doubled, .. } = self.audited;
        let messages = storm.messages;
        write!(
            formatter,
            "messages={messages} kills={kills} restarts={restarts} lost={lost} doubled={doubled}"
        )
    }
}

impl AddAssign for Handled {
    fn add_assign(&mut self, other: Self) {
        self.processed += other.processed;
        self.duplicates += other.duplicates;
        self.again += other.again;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of a storm in which all went well.
    fn tally() -> Tally {
        let storm = Storm {
            messages: 100,
            consumers: 4,
            seed: 7,
            fault: None,
        };
        Tally {
            kills: 14,
            restarts: 2,
            pruned: 50,
            handled: Handled {
                processed: 200,
                duplicates: 60,
                again: 3,
            },
            audited: Audited {
                lost: 0,
                doubled: 0,
                postings: 200,
                keys: 200,
                cents: 1_000,
                expected_cents: 1_000,
            },
            ..Tally::of(&storm)
        }
    }

    fn complaint(change: impl FnOnce(&mut Tally)) -> String {
        let mut tally = tally();
        change(&mut tally);
        let error = tally.judge().unwrap_err().to_string();
        let again = ": cargo xtask chaos --seed 7 --messages 100 --consumers 4";
        error.strip_suffix(again).unwrap_or(&error).to_owned()
    }

    #[test]
    fn the_last_line_is_the_same_for_people_and_programs() {
        let line = "messages=100 kills=14 restarts=2 lost=0 doubled=0";
        assert_eq!(tally().to_string(), line);
        assert!(tally().judge().is_ok());
    }

    #[test]
    fn what_is_wrong_is_said_with_the_way_to_see_it_again() {
        assert_eq!(
            complaint(|tally| tally.audited.lost = 1),
            "1 effects are lost, and 0 doubled"
        );
        assert_eq!(
            complaint(|tally| tally.audited.doubled = 2),
            "0 effects are lost, and 2 doubled"
        );
        assert_eq!(
            complaint(|tally| tally.audited.cents = 999),
            "the accounts hold 999 cents, and should hold 1000"
        );
        assert_eq!(
            complaint(|tally| tally.audited.keys = 199),
            "200 effects have 199 keys"
        );
    }

    #[test]
    fn a_storm_that_was_none_proves_nothing() {
        assert_eq!(
            complaint(|tally| tally.handled.duplicates = 0),
            "no message came twice"
        );
        assert_eq!(complaint(|tally| tally.pruned = 0), "nothing was pruned");
    }
}
