//! What a person sees.

use std::error::Error;

use idempotent_runtime::{Disposition, Verdict, disposition};

/// Tells what became of each delivery, and counts.
#[derive(Debug, Default)]
pub struct Report {
    is_quiet: bool,
    processed: u64,
    duplicates: u64,
    redelivered: u64,
    rejected: u64,
}

impl Report {
    /// With `is_quiet` only the last line is shown.
    #[must_use]
    pub fn new(is_quiet: bool) -> Self {
        Self {
            is_quiet,
            ..Self::default()
        }
    }

    /// Tells what became of a delivery, and what the broker is to be told.
    pub fn told<E: Error + 'static>(
        &mut self,
        delivery: &str,
        result: &Result<Verdict, E>,
    ) -> Answer {
        let (count, word, answer) = match result {
            Ok(Verdict::Processed) => (&mut self.processed, "processed", Answer::Acknowledge),
            Ok(_) => (&mut self.duplicates, "duplicate", Answer::Acknowledge),
            Err(error) => match disposition(error) {
                Disposition::Redeliver => (&mut self.redelivered, "again", Answer::Redeliver),
                Disposition::Reject => (&mut self.rejected, "rejected", Answer::Reject),
            },
        };
        *count += 1;
        if !self.is_quiet {
            match result {
                Ok(_) => println!("{word:<9} {delivery}"),
                Err(error) => println!("{word:<9} {delivery}: {error}"),
            }
        }
        answer
    }

    /// The last line.
    pub fn finish(&self) {
        println!(
            "processed={} duplicates={} redelivered={} rejected={}",
            self.processed, self.duplicates, self.redelivered, self.rejected
        );
    }
}

/// Why a message is a dead letter, for a header: one line, and not long.
#[must_use]
pub fn why(error: &impl Error) -> String {
    const LONGEST: usize = 200;
    let text = error.to_string();
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    printable.take(LONGEST).collect()
}

/// What to tell the broker.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// It is done, and committed.
    Acknowledge,
    /// It may succeed another time.
    Redeliver,
    /// It never will.
    Reject,
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn why_is_one_short_line() {
        let error = io::Error::other(format!("one\r\ntwo {}", "\u{e9}".repeat(300)));
        let why = why(&error);
        assert!(why.starts_with("one  two \u{e9}"), "{why}");
        assert_eq!(why.chars().count(), 200);
    }
}
