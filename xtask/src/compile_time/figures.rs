//! A few numbers in place of many.

/// The middle of some numbers, and how far they lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) lowest: f64,
    pub(super) highest: f64,
}

impl Spread {
    /// Of no number at all, each is `NaN`.
    pub(super) fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<_> = numbers.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Self {
            median: median(&sorted),
            lowest: sorted.first().copied().unwrap_or(f64::NAN),
            highest: sorted.last().copied().unwrap_or(f64::NAN),
        }
    }
}

/// The one in the middle, or the mean of the two.
fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    let (low, high) = sorted.split_at(half);
    match (low.last(), high.first()) {
        (Some(low), Some(high)) if sorted.len().is_multiple_of(2) => f64::midpoint(*low, *high),
        (_, Some(middle)) => *middle,
        (_, None) => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_odd_number_it_is_the_one_in_the_middle() {
        let wanted = Spread {
            median: 2.0,
            lowest: 1.0,
            highest: 30.0,
        };
        assert_eq!(Spread::of([30.0, 1.0, 2.0]), wanted);
    }

    #[test]
    fn of_an_even_number_it_is_the_mean_of_two() {
        let wanted = Spread {
            median: 3.0,
            lowest: -1.0,
            highest: 9.0,
        };
        assert_eq!(Spread::of([9.0, 4.0, 2.0, -1.0]), wanted);
    }

    #[test]
    fn of_one_or_none_there_is_no_spread() {
        let one = Spread::of([5.0]);
        assert_eq!((one.median, one.lowest, one.highest), (5.0, 5.0, 5.0));
        let none = Spread::of([]);
        assert!(none.median.is_nan() && none.lowest.is_nan() && none.highest.is_nan());
    }
}
