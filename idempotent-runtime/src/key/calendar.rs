//! Dates and times in the proleptic Gregorian calendar, as RFC 3339 writes them.

use core::{
    fmt::{self, Display, Formatter},
    time::Duration,
};

/// A civil date: `2026-01-31`. Years outside 0 to 9999 carry a sign.
pub(super) struct Date {
    year: i128,
    month: i128,
    day: i128,
}

impl Date {
    #[cfg(any(feature = "chrono", feature = "time"))]
    pub(super) fn new(year: impl Into<i128>, month: impl Into<i128>, day: impl Into<i128>) -> Self {
        Self {
            year: year.into(),
            month: month.into(),
            day: day.into(),
        }
    }

    /// The date that is `days` after 1970-01-01.
    ///
    /// Howard Hinnant's `civil_from_days`, <https://howardhinnant.github.io/date_algorithms.html>:
    /// the year starts in March, so that the leap day is its last.
    fn from_days(days: i128) -> Self {
        let days = days + 719_468;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = if month_from_march < 10 {
            month_from_march + 3
        } else {
            month_from_march - 9
        };
        Self {
            year: year_of_era + era * 400 + i128::from(month <= 2),
            month,
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
        }
    }
}

impl Display for Date {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { year, month, day } = self;
        match year {
            0..=9999 => write!(f, "{year:04}"),
            _ => write!(f, "{year:+05}"),
        }?;
        write!(f, "-{month:02}-{day:02}")
    }
}

/// A moment in UTC with nanoseconds: `2026-01-31T12:00:00.000000000Z`.
pub(super) struct Timestamp {
    /// Since 1970-01-01T00:00:00Z, rounded down.
    seconds: i128,
    /// From a second on in a leap second.
    nanoseconds: u32,
}

impl Timestamp {
    pub(super) fn new(seconds: impl Into<i128>, nanoseconds: u32) -> Self {
        Self {
            seconds: seconds.into(),
            nanoseconds,
        }
    }

    pub(super) fn after_epoch(duration: Duration) -> Self {
        Self::new(duration.as_secs(), duration.subsec_nanos())
    }

    pub(super) fn before_epoch(duration: Duration) -> Self {
        let seconds = -i128::from(duration.as_secs());
        match duration.subsec_nanos() {
            0 => Self::new(seconds, 0),
            nanoseconds => Self::new(seconds - 1, SECOND - nanoseconds),
        }
    }
}

impl Display for Timestamp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let date = Date::from_days(self.seconds.div_euclid(86_400));
        let second_of_day = self.seconds.rem_euclid(86_400);
        let (hour, minute) = (second_of_day / 3_600, second_of_day / 60 % 60);
        let (second, nanoseconds) = match (second_of_day % 60, self.nanoseconds) {
            // A leap second. In any other second the tenth digit stays: odd, but not equal to
            // the second that follows.
            (59, SECOND..) => (60, self.nanoseconds - SECOND),
            (second, nanoseconds) => (second, nanoseconds),
        };
        write!(
            f,
            "{date}T{hour:02}:{minute:02}:{second:02}.{nanoseconds:09}Z"
        )
    }
}

/// In nanoseconds.
const SECOND: u32 = 1_000_000_000;
