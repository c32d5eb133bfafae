//! Taking the times.

use std::time::Instant;

use crate::cargo::capture;
use crate::compile_time::figures::Spread;
use crate::compile_time::project::{Cache, Project};
use crate::compile_time::sources::{Edit, HANDLERS, Variant};
use crate::error::Error;

/// How often a round is begun that was disturbed.
const TRIES: u32 = 3;

/// The seconds of one round, in which each crate was checked once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Round {
    /// In the order of [`Variant::ALL`].
    pub(super) crates: [f64; 4],
    /// Cargo by itself, when there is nothing to check.
    pub(super) idle: f64,
}

impl Round {
    pub(super) fn of(&self, variant: Variant) -> f64 {
        self.crates[variant as usize]
    }

    /// What a handler of this crate costs more than a plain one, in milliseconds.
    fn extra(&self, variant: Variant) -> f64 {
        let seconds = self.of(variant) - self.of(Variant::Plain);
        seconds * 1000.0 / f64::from(HANDLERS)
    }
}

/// How many times as long one crate takes as the other, in the same round.
pub(super) fn ratio(rounds: &[Round], one: Variant, other: Variant) -> Spread {
    Spread::of(rounds.iter().map(|round| round.of(one) / round.of(other)))
}

/// See [`Round::extra`].
pub(super) fn extra(rounds: &[Round], variant: Variant) -> Spread {
    Spread::of(rounds.iter().map(|round| round.extra(variant)))
}

/// Changes a source, and sees how long its check takes.
pub(super) struct Stopwatch<'a> {
    project: &'a Project,
    /// No two edits are the same.
    edits: u32,
}

impl<'a> Stopwatch<'a> {
    pub(super) fn new(project: &'a Project) -> Self {
        Self { project, edits: 0 }
    }

    /// Checks each crate once, with nothing else checked beside it.
    pub(super) fn round(&mut self, number: u32, cache: Cache) -> Result<Round, Error> {
        for _ in 0..TRIES {
            if let Some(round) = self.undisturbed(number, cache)? {
                return Ok(round);
            }
            eprintln!("the runtime was changed meanwhile: once again");
            // Every crate, since what it knows from last time is of the old runtime.
            self.project.prepare()?;
        }
        Err(Error::new("the runtime is being changed all the time"))
    }

    /// Another crate is the first in each round, so that none always follows the same. `None` if
    /// cargo found more to do than we gave it.
    fn undisturbed(&mut self, number: u32, cache: Cache) -> Result<Option<Round>, Error> {
        let mut order = Variant::ALL;
        let first = number as usize % order.len();
        order.rotate_left(first);
        let mut round = Round::default();
        for variant in order {
            self.edit(variant, cache)?;
            let (seconds, checked) = self.timed(variant, cache)?;
            if checked != [variant.name()] {
                return Ok(None);
            }
            round.crates[variant as usize] = seconds;
        }
        let (seconds, checked) = self.timed(Variant::Plain, cache)?;
        round.idle = seconds;
        Ok(checked.is_empty().then_some(round))
    }

    fn edit(&mut self, variant: Variant, cache: Cache) -> Result<(), Error> {
        self.edits += 1;
        let edit = match cache {
            Cache::Off => Edit::Comment(self.edits),
            Cache::On => Edit::Literal(self.edits),
        };
        self.project.write(variant, edit)
    }

    /// The seconds, and the names of what was checked.
    fn timed(&self, variant: Variant, cache: Cache) -> Result<(f64, Vec<String>), Error> {
        let mut command = self.project.check(variant, cache);
        let start = Instant::now();
        let printed = capture(&mut command, "a timed check")?;
        Ok((start.elapsed().as_secs_f64(), checked(&printed.stderr)))
    }
}

/// Reads cargo's words on what it does: `Checking plain v0.0.0 (…)`.
fn checked(stderr: &str) -> Vec<String> {
    let name = |line: &str| {
        let (verb, rest) = line.trim_start().split_once(' ')?;
        let name = rest.split_whitespace().next()?;
        matches!(verb, "Checking" | "Compiling").then(|| name.to_owned())
    };
    stderr.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUNDS: [Round; 3] = [
        Round {
            crates: [2.0, 3.0, 3.5, 8.0],
            idle: 0.1,
        },
        // The machine was busy.
        Round {
            crates: [20.0, 30.0, 36.0, 80.0],
            idle: 1.0,
        },
        Round {
            crates: [2.0, 3.0, 3.8, 8.0],
            idle: 0.1,
        },
    ];

    #[test]
    fn a_busy_machine_does_not_change_a_ratio() {
        assert_eq!(
            ratio(&ROUNDS, Variant::Instrument, Variant::Plain),
            Spread::of([4.0; 3])
        );
        assert_eq!(
            ratio(&ROUNDS, Variant::Idempotent, Variant::ByHand),
            Spread::of([3.5 / 3.0, 36.0 / 30.0, 3.8 / 3.0])
        );
    }

    #[test]
    fn what_a_handler_costs_is_in_milliseconds() {
        assert_eq!(
            extra(&ROUNDS, Variant::Instrument),
            Spread::of([20.0, 200.0, 20.0])
        );
        assert_eq!(extra(&ROUNDS, Variant::Plain), Spread::of([0.0; 3]));
    }

    #[test]
    fn what_was_checked_is_read_from_what_cargo_says() {
        let stderr = "   Compiling idempotent-macros v0.1.0 (/w/idempotent-macros)\n    \
                      Checking plain v0.0.0 (/w/target/compile-time/plain)\n    \
                      Finished `dev` profile [unoptimized + debuginfo] target(s) in 2.11s\n";
        assert_eq!(checked(stderr), ["idempotent-macros", "plain"]);
        assert!(checked("    Finished `dev` profile\n").is_empty());
    }
}
