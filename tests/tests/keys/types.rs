//! Types at their edges.

use std::time::{Duration, SystemTime};

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use idempotent_runtime::{__private::Key, KeyPart, KeyText, KeyWriter};
use rust_decimal::Decimal;

use super::{key, text};

#[test]
fn a_key_can_cross_threads() {
    fn crosses<T: Clone + Send + Sync + 'static>() {}

    crosses::<Key>();
}

#[test]
fn a_key_knows_its_scope() {
    assert_eq!(key("a").scope(), "test");
}

#[test]
fn a_long_text_keeps_its_beginning_and_its_length() {
    let text = text(&"x".repeat(5_000));
    assert_eq!(text.len(), 255);
    assert!(text.starts_with(&"x".repeat(190)));
    assert_eq!(text.as_bytes()[190], b'#');
}

#[test]
fn long_texts_that_differ_in_the_last_byte_differ() {
    let long = "0123456789abcdef".repeat(312);
    assert_ne!(text(&format!("{long}a")), text(&format!("{long}b")));
}

#[test]
fn every_nan_has_one_text() {
    let quiet = f64::from_bits(0xfff8_0000_0000_0001);
    assert_eq!(
        [
            text(&f64::NAN),
            text(&-f64::NAN),
            text(&quiet),
            text(&f32::NAN)
        ],
        ["NaN"; 4]
    );
}

#[test]
fn a_float_reads_back() {
    for float in [1e200, -1e-200, f64::EPSILON, 0.1 + 0.2, 1.0 / 3.0] {
        assert_eq!(text(&float).parse(), Ok(float));
    }
}

#[test]
fn a_system_time_far_away_has_a_text() {
    let century = Duration::from_hours(24 * 36_524);
    let mut time = SystemTime::UNIX_EPOCH;
    let mut step = century;
    while let Some(earlier) = time.checked_sub(step) {
        time = earlier;
        step *= 2;
    }
    assert!(text(&time).starts_with('-'), "{}", text(&time));
    assert!(text(&time).ends_with('Z'));

    let mut step = century;
    let mut time = SystemTime::UNIX_EPOCH;
    while let Some(later) = time.checked_add(step) {
        time = later;
        step *= 2;
    }
    assert!(text(&time).starts_with("%2B"), "{}", text(&time));
}

#[test]
fn a_time_before_1970_rounds_down() {
    let before = SystemTime::UNIX_EPOCH - Duration::from_nanos(1);
    assert_eq!(text(&before), "1969-12-31T23:59:59.999999999Z");
    let before = SystemTime::UNIX_EPOCH - Duration::from_millis(1_500);
    assert_eq!(text(&before), "1969-12-31T23:59:58.500000000Z");
}

#[test]
fn every_day_of_four_centuries_agrees_with_chrono() {
    let first = NaiveDate::from_ymd_opt(1800, 1, 1).unwrap();
    for day in 0..146_097 {
        let date = first + chrono::Days::new(day);
        let midnight = date.and_time(NaiveTime::MIN).and_utc();
        assert_eq!(text(&midnight), format!("{date}T00:00:00.000000000Z"));
    }
}

#[test]
fn the_first_and_last_dates_have_a_text() {
    assert_eq!(text(&NaiveDate::MIN), "-262143-01-01");
    assert_eq!(text(&NaiveDate::MAX), "%2B262142-12-31");
    assert_eq!(
        text(&NaiveDateTime::MIN),
        "-262143-01-01T00:00:00.000000000Z"
    );
    assert_eq!(
        text(&NaiveDateTime::MAX),
        "%2B262142-12-31T23:59:59.999999999Z"
    );
    assert_eq!(text(&time::Date::MIN), "-9999-01-01");
    assert_eq!(
        text(&time::PrimitiveDateTime::MAX),
        "9999-12-31T23:59:59.999999999Z"
    );
    let farthest_west = time::UtcOffset::from_hms(-23, 59, 59).unwrap();
    let last = time::PrimitiveDateTime::MAX.assume_offset(farthest_west);
    assert_eq!(text(&last), "%2B10000-01-01T23:59:58.999999999Z");
}

#[test]
fn a_leap_second_is_a_second_of_its_own() {
    let date = NaiveDate::from_ymd_opt(2016, 12, 31).unwrap();
    let leap = date.and_hms_nano_opt(23, 59, 59, 1_500_000_000).unwrap();
    let next =
        date.and_hms_nano_opt(23, 59, 59, 500_000_000).unwrap() + chrono::TimeDelta::seconds(1);
    assert_eq!(text(&leap), "2016-12-31T23:59:60.500000000Z");
    assert_ne!(text(&leap), text(&next));
}

#[test]
fn a_decimal_has_one_text_at_every_scale() {
    let texts = ["5", "5.0", "5.00", "5.000000000000"].map(|text| text.parse::<Decimal>().unwrap());
    assert_eq!(texts.map(|decimal| text(&decimal)), ["5"; 4]);
    assert_eq!(text(&-Decimal::ZERO), "0");
    assert_eq!(text(&Decimal::MAX), "79228162514264337593543950335");
    assert_eq!(text(&Decimal::new(1, 28)), "0.0000000000000000000000000001");
}

#[test]
fn no_implementation_leaves_the_alphabet() {
    struct Hostile;

    impl KeyText for Hostile {
        fn write_key(&self, writer: &mut KeyWriter) {
            writer.push_str("'; DROP TABLE processed_messages; --");
            writer.push_display("')/~");
            writer.push_variant("A(~)/", |writer| writer.push_bytes(b"'"));
            writer.push_variant("", |_| {});
        }
    }

    impl KeyPart for Hostile {}

    assert_eq!(
        text(&Hostile),
        "%27%3B%20DROP%20TABLE%20processed_messages%3B%20--/%27%29%2F%7E/A%28%7E%29%2F(27)/",
    );
}

#[test]
fn two_pushes_do_not_run_together() {
    struct Two(&'static str, &'static str);

    impl KeyText for Two {
        fn write_key(&self, writer: &mut KeyWriter) {
            writer.push_str(self.0);
            writer.push_str(self.1);
        }
    }

    assert_ne!(text(&Two("ab", "c")), text(&Two("a", "bc")));
    assert_eq!(text(&(Two("a", "b"), Two("c", "d"))), "a/b/c/d");
}
