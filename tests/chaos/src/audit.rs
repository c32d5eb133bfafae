//! What the ledger says, against what was published.

use std::collections::HashMap;

use xtask::chaos::Audited;

use crate::entry::{Channel, Entry};

/// What is in the database after a storm.
pub(crate) struct Books {
    /// Event, channel and cents of each posting.
    pub(crate) postings: Vec<(i64, String, i64)>,
    /// The sum of each account.
    pub(crate) balances: Vec<(i64, i64)>,
    pub(crate) keys: i64,
}

/// Every event of the storm was confirmed to its publisher: all of them are expected.
pub(crate) fn audit(books: &Books, messages: u32) -> Audited {
    let mut found = Audited {
        postings: books.postings.len().try_into().unwrap_or(i64::MAX),
        keys: books.keys,
        cents: books.balances.iter().map(|(_, cents)| cents).sum(),
        expected_cents: Entry::all(messages).map(Entry::cents).sum(),
        ..Audited::default()
    };
    compare_postings(&mut found, books, messages);
    compare_sums(&mut found, books);
    found
}

fn compare_postings(found: &mut Audited, books: &Books, messages: u32) {
    let mut copies: HashMap<Entry, u64> = Entry::all(messages).map(|one| (one, 0)).collect();
    for (event, channel, cents) in &books.postings {
        let posted = Channel::named(channel)
            .map(|channel| Entry {
                event: *event,
                channel,
            })
            .filter(|entry| entry.cents() == *cents)
            .and_then(|entry| copies.get_mut(&entry));
        match posted {
            Some(copies) => *copies += 1,
            None => found.doubled += 1,
        }
    }
    for copies in copies.into_values() {
        found.lost += u64::from(copies == 0);
        found.doubled += copies.saturating_sub(1);
    }
}

fn compare_sums(found: &mut Audited, books: &Books) {
    let mut open: HashMap<i64, i64> = books.balances.iter().copied().collect();
    for (event, channel, cents) in &books.postings {
        if let Some(channel) = Channel::named(channel) {
            let event = *event;
            *open.entry(Entry { event, channel }.account()).or_default() -= cents;
        }
    }
    for rest in open.into_values() {
        found.lost += u64::from(rest < 0);
        found.doubled += u64::from(rest > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: u32 = 1_100;

    /// As they are when all went well.
    fn books() -> Books {
        let mut balances = HashMap::<i64, i64>::new();
        let posting = |entry: Entry| {
            *balances.entry(entry.account()).or_default() += entry.cents();
            (entry.event, entry.channel.name().to_owned(), entry.cents())
        };
        let postings: Vec<_> = Entry::all(MESSAGES).map(posting).collect();
        Books {
            keys: postings.len().try_into().unwrap(),
            balances: balances.into_iter().collect(),
            postings,
        }
    }

    /// Lost, doubled, and the cents that are missing, after one change to the books.
    fn found(change: impl FnOnce(&mut Books)) -> (u64, u64, i64) {
        let mut books = books();
        change(&mut books);
        let found = audit(&books, MESSAGES);
        let missing = found.expected_cents - found.cents;
        (found.lost, found.doubled, missing)
    }

    #[test]
    fn books_that_are_right_are_found_right() {
        assert_eq!(found(|_| ()), (0, 0, 0));
    }

    #[test]
    fn a_posting_that_is_missing_is_lost() {
        let lost = found(|books| {
            let (event, _, cents) = books.postings.remove(7);
            let mut balances = books.balances.iter_mut();
            let (_, sum) = balances.find(|(account, _)| *account == event).unwrap();
            *sum -= cents;
        });
        assert_eq!(lost, (1, 0, 2_000_029 + 3 * 11));
    }

    #[test]
    fn a_posting_of_each_copy_is_doubled() {
        let doubled = found(|books| {
            let twice = books.postings[7].clone();
            let mut balances = books.balances.iter_mut();
            let (_, sum) = balances.find(|(account, _)| *account == twice.0).unwrap();
            *sum += 2 * twice.2;
            books.postings.extend([twice.clone(), twice]);
        });
        assert_eq!(doubled, (0, 2, -2 * (2_000_029 + 3 * 11)));
    }

    #[test]
    fn one_channel_does_not_stand_for_the_other() {
        let swallowed = found(|books| {
            let email = books.postings[6].clone();
            books.postings[7] = email;
        });
        // The account has the cents of the one that has no posting.
        assert_eq!(swallowed, (1, 2, 0));
    }

    #[test]
    fn half_an_effect_is_found_by_the_sums() {
        assert_eq!(found(|books| books.balances[7].1 -= 1), (1, 0, 1));
        assert_eq!(found(|books| books.balances[7].1 += 1), (0, 1, -1));
        let no_sum = found(|books| {
            books.balances.remove(7);
        });
        assert_eq!((no_sum.0, no_sum.1), (1, 0));
    }

    #[test]
    fn a_posting_that_nobody_asked_for_is_one_too_many() {
        let stranger = |event, channel: &str, cents| {
            let posting = (event, channel.to_owned(), cents);
            let (lost, doubled, _) = found(|books| books.postings.push(posting));
            assert!(doubled > 0, "{lost} {doubled}");
        };
        stranger(i64::from(MESSAGES), "email", 1_000_003);
        stranger(0, "fax", 1_000_003);
        stranger(0, "email", 1);
    }
}
