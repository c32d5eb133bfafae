//! Figures for people.

use std::fmt::{self, Display, Formatter};

/// The median of some values, and how far they spread.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The lowest.
    pub low: f64,
    /// The one in the middle.
    pub median: f64,
    /// The highest.
    pub high: f64,
}

impl Spread {
    /// Of at least one value.
    ///
    /// # Panics
    ///
    /// Without any.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self {
            low: values[0],
            median: values[values.len() / 2],
            high: values[values.len() - 1],
        }
    }

    /// How many times the base, within each round.
    #[must_use]
    pub fn of_ratios(values: &[f64], base: &[f64]) -> Self {
        Self::new(values.iter().zip(base).map(|(value, base)| value / base))
    }
}

/// With as many decimals as the format asks for.
impl Display for Spread {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { low, median, high } = self;
        let decimals = f.precision().unwrap_or(0);
        write!(
            f,
            "{median:.decimals$} ({low:.decimals$}–{high:.decimals$})"
        )
    }
}

/// The value that so many of 1 000 do not exceed.
///
/// # Panics
///
/// Without any value.
#[must_use]
pub fn quantile(sorted: &[f64], per_mille: usize) -> f64 {
    let rank = (sorted.len() * per_mille).div_ceil(1_000).max(1);
    sorted[rank - 1]
}

/// A mean.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "figures for people")]
pub fn per(sum: i64, count: i64) -> f64 {
    sum as f64 / count as f64
}
