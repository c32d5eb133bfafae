//! What is published, and in which order.

use fastrand::Rng;
use idempotent_runtime::KeyPart;
use xtask::chaos::second_copies;

/// Few enough that several consumers want the same one at once.
pub(crate) const ACCOUNTS: i64 = 500;

/// An event on one of its channels: what is posted once.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Entry {
    pub(crate) event: i64,
    pub(crate) channel: Channel,
}

/// Where an event is rightly fanned out to.
#[derive(Clone, Copy, Debug, Eq, Hash, KeyPart, PartialEq)]
pub(crate) enum Channel {
    Email,
    Push,
}

impl Channel {
    pub(crate) const ALL: [Self; 2] = [Self::Email, Self::Push];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Push => "push",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.name() == name)
    }
}

impl Entry {
    pub(crate) const fn account(self) -> i64 {
        self.event % ACCOUNTS
    }

    /// Numbers without a common measure, so that two mistakes do not make up for each other.
    pub(crate) const fn cents(self) -> i64 {
        match self.channel {
            Channel::Email => 1_000_003 + self.event * 7,
            Channel::Push => 2_000_029 + self.event * 11,
        }
    }

    /// Whether its handler is one with `replay`.
    pub(crate) const fn has_receipt(self) -> bool {
        self.event % 4 == 0
    }

    /// Everything that is to be in the ledger.
    pub(crate) fn all(messages: u32) -> impl Iterator<Item = Self> {
        (0..i64::from(messages))
            .flat_map(|event| Channel::ALL.map(|channel| Self { event, channel }))
    }
}

/// The events as they are published: all, and some a second time, later.
///
/// It is the same for the same seed, so that a publisher that was killed goes on where it was.
#[derive(Debug, PartialEq)]
pub(crate) struct Order(Vec<u32>);

impl Order {
    pub(crate) fn of(messages: u32, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let mut twice: Vec<u32> = (0..messages).collect();
        random.shuffle(&mut twice);
        twice.truncate(second_copies(messages) as usize);
        let first = (0..messages).map(|event| (f64::from(event), event));
        let second = twice.into_iter().map(|event| {
            let rest = f64::from(messages - event);
            (f64::from(event) + rest * random.f64(), event)
        });
        let mut all: Vec<_> = first.chain(second).collect();
        all.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        Self(all.into_iter().map(|(_, event)| event).collect())
    }

    pub(crate) fn events(&self) -> &[u32] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_seed() {
        assert_eq!(Order::of(1_000, 7), Order::of(1_000, 7));
        assert_ne!(Order::of(1_000, 7), Order::of(1_000, 8));
    }

    #[test]
    fn all_come_once_and_three_of_ten_twice() {
        let order = Order::of(1_000, 7);
        let copies = |event| order.events().iter().filter(|one| **one == event).count();
        let copies: Vec<_> = (0..1_000).map(copies).collect();
        let with = |number| copies.iter().filter(|copies| **copies == number).count();
        assert_eq!((with(1), with(2)), (700, 300));
    }

    #[test]
    fn the_second_copy_comes_at_any_later_time() {
        let order = Order::of(1_000, 7);
        let distance = |event: u32| {
            let at = |(at, one): (usize, &u32)| (*one == event).then_some(at);
            let places: Vec<_> = order.events().iter().enumerate().filter_map(at).collect();
            (places.len() == 2).then(|| places[1] - places[0])
        };
        let distances: Vec<_> = (0..1_000).filter_map(distance).collect();
        assert!(distances.iter().any(|distance| *distance < 20));
        assert!(distances.iter().any(|distance| *distance > 500));
    }

    #[test]
    fn a_channel_is_found_by_its_name() {
        for channel in Channel::ALL {
            assert_eq!(Channel::named(channel.name()), Some(channel));
        }
        assert_eq!(Channel::named("fax"), None);
    }
}
