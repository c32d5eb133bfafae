//! Numbers that are the same for the same seed.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

/// `SplitMix64`, by Steele, Lea and Flood.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below another, which is not 0. (That some are likelier by a trifle is of no matter
    /// here.)
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(super) fn shuffle<T>(&mut self, list: &mut [T]) {
        for (last, end) in (0..list.len()).zip(1..) {
            let other = usize::try_from(self.below(end)).unwrap_or(last);
            list.swap(last, other);
        }
    }
}

/// A seed that nobody has chosen.
pub(super) fn any_seed() -> u64 {
    // Each `RandomState` has keys of its own.
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_seed() {
        // As published with the algorithm.
        let mut random = Random::seeded(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn a_shuffle_keeps_everything_and_reaches_every_order() {
        let mut random = Random::seeded(1);
        let mut orders: Vec<_> = std::iter::repeat_with(|| {
            let mut list = [1, 2, 3];
            random.shuffle(&mut list);
            list
        })
        .take(200)
        .collect();
        orders.sort_unstable();
        orders.dedup();
        assert_eq!(orders.len(), 6);
        assert!(orders.iter().all(|order| order.iter().sum::<i32>() == 6));
    }

    #[test]
    fn seeds_that_nobody_has_chosen_differ() {
        assert_ne!(any_seed(), any_seed());
    }
}
