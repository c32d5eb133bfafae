//! What the processes of a storm print, and the driver reads.

use std::fmt::{self, Display, Formatter};
use std::str::{FromStr, SplitWhitespace};

use crate::error::Error;

/// A line of a process.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// All up to this place in the order are confirmed.
    Confirmed(u64),
    /// Deliveries were handled.
    Handled(Handled),
    /// So many keys are gone.
    Pruned(u64),
    /// What the storm did to it; it passes.
    Trouble(String),
    /// The audit is done.
    Audited(Audited),
}

/// How many deliveries were handled, as far as anybody lived to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Handled {
    /// Their effect is new.
    pub processed: u64,
    /// Their effect was there.
    pub duplicates: u64,
    /// Given back, for the database was down.
    pub again: u64,
}

/// What the audit has found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Audited {
    /// Entries without a posting, and accounts with less than their postings.
    pub lost: u64,
    /// Postings beyond one for each entry, and accounts with more than their postings.
    pub doubled: u64,
    /// In the ledger.
    pub postings: i64,
    /// Of those who posted.
    pub keys: i64,
    /// In all accounts together.
    pub cents: i64,
    /// What they should be.
    pub expected_cents: i64,
}

impl Said {
    pub(super) fn parse(line: &str) -> Result<Self, Error> {
        let refuse = || Error::new(format!("a process says `{line}`, which is not expected"));
        Self::read(line).ok_or_else(refuse)
    }

    fn read(line: &str) -> Option<Self> {
        let (kind, rest) = line.split_once(' ')?;
        let mut words = rest.split_whitespace();
        let said = match kind {
            "confirmed" => Self::Confirmed(number(&mut words)?),
            "handled" => Self::Handled(Handled {
                processed: number(&mut words)?,
                duplicates: number(&mut words)?,
                again: number(&mut words)?,
            }),
            "pruned" => Self::Pruned(number(&mut words)?),
            "trouble" => return Some(Self::Trouble(rest.to_owned())),
            "audited" => Self::Audited(Audited {
                lost: number(&mut words)?,
                doubled: number(&mut words)?,
                postings: number(&mut words)?,
                keys: number(&mut words)?,
                cents: number(&mut words)?,
                expected_cents: number(&mut words)?,
            }),
            _ => return None,
        };
        words.next().is_none().then_some(said)
    }
}

/// One line.
impl Display for Said {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Confirmed(place) => write!(formatter, "confirmed {place}"),
            Self::Handled(Handled {
                processed,
                duplicates,
                again,
            }) => write!(formatter, "handled {processed} {duplicates} {again}"),
            Self::Pruned(keys) => write!(formatter, "pruned {keys}"),
            Self::Trouble(trouble) => write!(formatter, "trouble {}", trouble.replace('\n', " ")),
            Self::Audited(Audited {
                lost,
                doubled,
                postings,
                keys,
                cents,
                expected_cents,
            }) => write!(
                formatter,
                "audited {lost} {doubled} {postings} {keys} {cents} {expected_cents}"
            ),
        }
    }
}

fn number<T: FromStr>(words: &mut SplitWhitespace<'_>) -> Option<T> {
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let read = |line| Said::parse(line).map_err(|error| error.to_string());
        assert_eq!(read("confirmed 700"), Ok(Said::Confirmed(700)));
        assert_eq!(read("pruned 50"), Ok(Said::Pruned(50)));
        let handled = Handled {
            processed: 16,
            duplicates: 3,
            again: 1,
        };
        assert_eq!(read("handled 16 3 1"), Ok(Said::Handled(handled)));
        let trouble = Said::Trouble("it hangs up".to_owned());
        assert_eq!(read("trouble it hangs up"), Ok(trouble));
        let audited = Audited {
            lost: 1,
            doubled: 2,
            postings: 3,
            keys: 4,
            cents: 5,
            expected_cents: 6,
        };
        assert_eq!(read("audited 1 2 3 4 5 6"), Ok(Said::Audited(audited)));
    }

    #[test]
    fn what_is_read_is_what_was_said() {
        for line in [
            "confirmed 700",
            "handled 16 3 1",
            "pruned 50",
            "trouble it hangs up",
            "audited 1 2 3 4 -5 6",
        ] {
            assert_eq!(Said::parse(line).unwrap().to_string(), line);
        }
        let lines = Said::Trouble("it\nhangs up".to_owned());
        assert_eq!(lines.to_string(), "trouble it hangs up");
    }

    #[test]
    fn other_lines_are_refused() {
        for line in [
            "",
            "confirmed",
            "confirmed x",
            "pruned 1 2",
            "handled 1 2",
            "done 1",
        ] {
            let error = Said::parse(line).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("a process says `{line}`, which is not expected")
            );
        }
    }
}
