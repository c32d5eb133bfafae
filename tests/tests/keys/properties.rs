//! Random values, in pairs that differ little.

use std::{borrow::Cow, rc::Rc, sync::Arc};

use idempotent_runtime::{
    __private::{KeyBuilder, at, nullable_part, part},
    KeyPart,
};
use proptest::{
    collection::vec,
    prelude::*,
    sample::select,
    test_runner::{TestError, TestRunner},
};

use super::{
    full,
    injective::{naive, unwrapped},
    shape::{PIECES, Shape, Value},
    text,
};

proptest! {
    #![proptest_config(config(1_000_000))]

    #[test]
    fn different_values_never_meet((one, other) in near_values()) {
        prop_assert_eq!(one == other, text(&one) == text(&other));
    }
}

proptest! {
    #![proptest_config(config(100_000))]

    #[test]
    fn different_events_never_meet(one in event(), other in event(), edit in 0..4) {
        let other = one.edited(other, edit);
        prop_assert_eq!(one == other, text_of_parts(&one) == text_of_parts(&other));
    }

    #[test]
    fn a_text_stays_within_its_alphabet(string: String, bytes: Vec<u8>) {
        for text in [text(&string), text(&bytes), text(&(&string, &bytes))] {
            prop_assert!(text.len() <= 255);
            prop_assert!(text.bytes().all(|byte| {
                byte.is_ascii_alphanumeric() || b"-._:%/()~#".contains(&byte)
            }), "{}", text);
        }
    }

    #[test]
    fn an_integer_has_one_text_in_every_type(integer: u32) {
        let expected = text(&integer);
        prop_assert_eq!(&text(&u64::from(integer)), &expected);
        prop_assert_eq!(&text(&i64::from(integer)), &expected);
        prop_assert_eq!(&text(&u128::from(integer)), &expected);
        prop_assert_eq!(&text(&integer.to_string()), &expected);
    }

    #[test]
    fn a_string_has_one_text_in_every_type(string: String) {
        #[derive(KeyPart)]
        struct Newtype<T>(T);

        let expected = text(&string);
        prop_assert_eq!(&text(string.as_str()), &expected);
        prop_assert_eq!(&text(&Cow::from(&string)), &expected);
        prop_assert_eq!(&text(&Arc::<str>::from(string.as_str())), &expected);
        prop_assert_eq!(&text(&Rc::new(Box::new(&string))), &expected);
        prop_assert_eq!(&text(&Newtype(Newtype(string))), &expected);
    }

    #[test]
    fn parts_a_tuple_and_a_struct_have_one_text(first: String, second: i64) {
        #[derive(KeyPart)]
        struct Named {
            first: String,
            second: i64,
        }

        let mut builder = KeyBuilder::new("test");
        part(at(&mut builder, "first"), &first);
        part(at(&mut builder, "second"), &second);
        let expected = builder.finish().text().to_owned();
        prop_assert_eq!(&text(&(&first, second)), &expected);
        prop_assert_eq!(&text(&Named { first, second }), &expected);
    }
}

proptest! {
    // Digests are slow without optimisation.
    #![proptest_config(config(20_000))]

    #[test]
    fn long_texts_that_differ_in_one_place_never_meet(
        long in vec(select(PIECES), 60..400), place: prop::sample::Index, piece in select(PIECES),
    ) {
        let mut other = long.clone();
        other[place.index(long.len())] = piece;
        let (long, other) = (long.concat(), other.concat());
        prop_assert_eq!(long == other, text(&long) == text(&other));
    }
}

/// The property is worth something only if it finds what it looks for.
#[test]
fn the_property_finds_a_naive_join() {
    assert!(finds_collision(naive));
}

#[test]
fn the_property_finds_an_unwrapped_absence() {
    assert!(finds_collision(unwrapped));
}

#[test]
fn the_property_finds_case_folding() {
    assert!(finds_collision(|value| text(value).to_lowercase()));
}

fn finds_collision(text: impl Fn(&Value) -> String) -> bool {
    let found = TestRunner::new(ProptestConfig {
        cases: 100_000,
        ..config(0)
    })
    .run(&near_values(), |(one, other)| {
        prop_assert_eq!(one == other, text(&one) == text(&other));
        Ok(())
    });
    matches!(found, Err(TestError::Fail(..)))
}

/// Two values of one type, spelled by tapes that differ in a place or two: texts move from one
/// element to its neighbour, absences too.
fn near_values() -> impl Strategy<Value = (Value, Value)> {
    let edits = vec(
        (any::<prop::sample::Index>(), 0..4_usize, any::<u8>()),
        1..3,
    );
    (shape(), vec(any::<u8>(), 1..24), edits).prop_map(|(shape, tape, edits)| {
        let mut edited = tape.clone();
        for (place, edit, symbol) in edits {
            let place = place.index(edited.len());
            match edit {
                0 => edited[place] = symbol,
                1 => edited.insert(place, symbol),
                2 => edited.swap(0, place),
                _ if edited.len() > 1 => drop(edited.remove(place)),
                _ => {}
            }
        }
        let spelled = |tape: Vec<u8>| shape.spelled(&mut tape.into_iter().map(usize::from));
        (spelled(tape), spelled(edited))
    })
}

fn shape() -> impl Strategy<Value = Shape> {
    Just(Shape::Text).prop_recursive(4, 12, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(Shape::nullable),
            inner.clone().prop_map(Shape::in_enum),
            (inner.clone(), inner).prop_map(|(first, second)| first.beside(second)),
        ]
    })
}

#[derive(Clone, Debug, KeyPart, PartialEq)]
enum Change {
    Opened,
    Renamed(String),
    Moved { from: String, to: String },
    Replaced(Box<Change>, #[key(nullable)] Option<String>),
}

#[derive(Clone, Debug, PartialEq)]
struct Event {
    tenant: String,
    number: i8,
    parent: Option<(String, String)>,
    change: Change,
}

impl Event {
    /// Takes one field from `other`.
    fn edited(&self, other: Self, field: i32) -> Self {
        let event = self.clone();
        match field {
            0 => Self {
                tenant: other.tenant,
                ..event
            },
            1 => Self {
                number: other.number,
                ..event
            },
            2 => Self {
                parent: other.parent,
                ..event
            },
            _ => Self {
                change: other.change,
                ..event
            },
        }
    }
}

fn text_of_parts(event: &Event) -> String {
    let mut builder = KeyBuilder::new("test");
    part(at(&mut builder, "tenant"), &event.tenant);
    part(at(&mut builder, "number"), &event.number);
    nullable_part(at(&mut builder, "parent"), &event.parent);
    part(at(&mut builder, "change"), &event.change);
    builder.finish().text().to_owned()
}

fn event() -> impl Strategy<Value = Event> {
    let parent = prop::option::of((short(), short()));
    (short(), any::<i8>(), parent, change()).prop_map(|(tenant, number, parent, change)| Event {
        tenant,
        number,
        parent,
        change,
    })
}

fn change() -> impl Strategy<Value = Change> {
    let flat = prop_oneof![
        Just(Change::Opened),
        short().prop_map(Change::Renamed),
        (short(), short()).prop_map(|(from, to)| Change::Moved { from, to }),
    ];
    flat.prop_recursive(2, 4, 1, |inner| {
        (inner, prop::option::of(short()))
            .prop_map(|(change, reason)| Change::Replaced(Box::new(change), reason))
    })
}

fn short() -> impl Strategy<Value = String> {
    vec(select(PIECES), 0..3).prop_map(|pieces| pieces.concat())
}

/// `full_cases` if asked for, else a few thousand.
fn config(full_cases: u32) -> ProptestConfig {
    let cases = if full() {
        full_cases
    } else {
        full_cases.min(2_000)
    };
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
