//! Types of other crates.

use super::{KeyPart, KeyText, KeyWriter};

impl KeyText for uuid::Uuid {
    fn write_key(&self, writer: &mut KeyWriter) {
        writer.push_display(self.hyphenated());
    }
}

impl KeyPart for uuid::Uuid {}

#[cfg(feature = "ulid")]
mod ulid {
    use ulid::Ulid;

    use super::{KeyPart, KeyText, KeyWriter};

    impl KeyText for Ulid {
        fn write_key(&self, writer: &mut KeyWriter) {
            writer.push_display(self);
        }
    }

    impl KeyPart for Ulid {}
}

#[cfg(feature = "rust_decimal")]
mod rust_decimal {
    use rust_decimal::Decimal;

    use super::{KeyPart, KeyText, KeyWriter};

    impl KeyText for Decimal {
        fn write_key(&self, writer: &mut KeyWriter) {
            writer.push_display(self.normalize());
        }
    }

    impl KeyPart for Decimal {}
}

#[cfg(feature = "chrono")]
mod chrono {
    use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, TimeZone};

    use super::{KeyPart, KeyText, KeyWriter};
    use crate::key::{
        calendar::{Date, Timestamp},
        refused::{AllowsTimestamps, Unasserted},
    };

    impl KeyText for NaiveDate {
        fn write_key(&self, writer: &mut KeyWriter) {
            writer.push_display(Date::new(self.year(), self.month(), self.day()));
        }
    }

    impl KeyPart for NaiveDate {}

    impl<Tz: TimeZone> KeyText for DateTime<Tz> {
        fn write_key(&self, writer: &mut KeyWriter) {
            writer.push_display(Timestamp::new(
                self.timestamp(),
                self.timestamp_subsec_nanos(),
            ));
        }
    }

    /// As if in UTC.
    impl KeyText for NaiveDateTime {
        fn write_key(&self, writer: &mut KeyWriter) {
            self.and_utc().write_key(writer);
        }
    }

    impl<Tz: TimeZone> KeyPart for DateTime<Tz> where for<'a> Unasserted<'a>: AllowsTimestamps {}

    impl KeyPart for NaiveDateTime where for<'a> Unasserted<'a>: AllowsTimestamps {}
}

#[cfg(feature = "time")]
mod time {
    use time::{Date, OffsetDateTime, PrimitiveDateTime};

    use super::{KeyPart, KeyText, KeyWriter};
    use crate::key::{
        calendar,
        refused::{AllowsTimestamps, Unasserted},
    };

    impl KeyText for Date {
        fn write_key(&self, writer: &mut KeyWriter) {
            writer.push_display(calendar::Date::new(
                self.year(),
                u8::from(self.month()),
                self.day(),
            ));
        }
    }

    impl KeyPart for Date {}

    impl KeyText for OffsetDateTime {
        fn write_key(&self, writer: &mut KeyWriter) {
            writer.push_display(calendar::Timestamp::new(
                self.unix_timestamp(),
                self.nanosecond(),
            ));
        }
    }

    /// As if in UTC.
    impl KeyText for PrimitiveDateTime {
        fn write_key(&self, writer: &mut KeyWriter) {
            self.assume_utc().write_key(writer);
        }
    }

    impl KeyPart for OffsetDateTime where for<'a> Unasserted<'a>: AllowsTimestamps {}

    impl KeyPart for PrimitiveDateTime where for<'a> Unasserted<'a>: AllowsTimestamps {}
}
