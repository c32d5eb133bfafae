//! Keys without a value.

use core::fmt::{self, Display, Formatter};

use idempotent_runtime::{
    __private::{
        Key, KeyBuilder, at, nullable_part, nullable_stable_part, part, required_part,
        required_stable_part, stable_part,
    },
    KeyPart, KeyText, KeyWriter,
};

use super::key;

#[derive(KeyPart)]
enum Payload {
    Text(String),
    Bytes { bytes: Vec<u8> },
}

#[derive(KeyPart)]
struct Envelope {
    #[key(required)]
    id: Option<String>,
    payload: Payload,
}

#[test]
fn an_empty_part_is_named() {
    assert_eq!(key_of("7", "").missing(), Some("event.channel"));
    assert_eq!(key_of("7", "EMAIL").missing(), None);
}

#[test]
fn the_first_of_two_empty_parts_is_named() {
    assert_eq!(key_of("", "").missing(), Some("event.id"));
}

#[test]
fn an_empty_element_of_a_part_is_missing() {
    assert_eq!(key("").missing(), Some("value"));
    assert_eq!(key(&[0_u8; 0]).missing(), Some("value"));
    assert_eq!(key(&("a", "")).missing(), Some("value"));
    assert_eq!(key(&Payload::Text(String::new())).missing(), Some("value"));
    assert_eq!(
        key(&Payload::Bytes { bytes: Vec::new() }).missing(),
        Some("value")
    );
    assert_eq!(key(&Payload::Bytes { bytes: vec![0] }).missing(), None);
}

#[test]
fn an_absent_required_part_is_missing() {
    let mut builder = KeyBuilder::new("test");
    required_part(at(&mut builder, "event.id"), &None::<u64>);
    assert_eq!(builder.finish().missing(), Some("event.id"));

    let mut builder = KeyBuilder::new("test");
    required_stable_part(at(&mut builder, "event.rate"), &None::<f64>);
    assert_eq!(builder.finish().missing(), Some("event.rate"));
}

#[test]
fn an_absent_required_field_is_missing() {
    let envelope = |id: Option<&str>| Envelope {
        id: id.map(str::to_owned),
        payload: Payload::Text("a".to_owned()),
    };
    assert_eq!(key(&envelope(None)).missing(), Some("value"));
    assert_eq!(key(&envelope(Some(""))).missing(), Some("value"));
    assert_eq!(key(&envelope(Some("m-1"))).text(), "m-1/Text(a)");
}

#[test]
fn nothing_is_missing_inside_nullable() {
    let empty = || Payload::Text(String::new());
    assert_eq!(nullable(Some("")).missing(), None);
    assert_eq!(nullable(Some(&empty())).missing(), None);
    assert_eq!(nullable(None::<&String>).missing(), None);
    let texts = [None, Some(""), Some("None"), Some("null"), Some("~")];
    assert_eq!(
        texts.map(|text| nullable(text).text().to_owned()),
        ["~", "", "None", "null", "%7E"]
    );
}

#[test]
fn a_required_field_is_missing_also_inside_nullable() {
    let envelope = Envelope {
        id: None,
        payload: Payload::Text("a".to_owned()),
    };
    assert_eq!(nullable(Some(&envelope)).missing(), Some("value"));
}

#[test]
fn what_follows_a_nullable_part_can_be_missing() {
    let mut builder = KeyBuilder::new("test");
    nullable_stable_part(at(&mut builder, "event.rate"), &Some(1.5));
    stable_part(at(&mut builder, "event.id"), "");
    assert_eq!(builder.finish().missing(), Some("event.id"));
}

#[test]
fn a_type_that_writes_nothing_is_missing() {
    struct Silent;

    impl KeyText for Silent {
        fn write_key(&self, _: &mut KeyWriter) {}
    }

    assert_eq!(key(&Silent).missing(), Some("value"));
    assert_eq!(key(&("a", Silent)).missing(), Some("value"));
}

#[test]
fn a_display_that_fails_is_missing() {
    struct Broken;

    impl Display for Broken {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            f.write_str("half")?;
            Err(fmt::Error)
        }
    }

    impl KeyText for Broken {
        fn write_key(&self, writer: &mut KeyWriter) {
            writer.push_display(self);
        }
    }

    assert_eq!(key(&Broken).missing(), Some("value"));
}

fn key_of(id: &str, channel: &str) -> Key {
    let mut builder = KeyBuilder::new("test");
    part(at(&mut builder, "event.id"), id);
    part(at(&mut builder, "event.channel"), channel);
    builder.finish()
}

fn nullable<T: KeyPart + ?Sized>(value: Option<&T>) -> Key {
    let mut builder = KeyBuilder::new("test");
    nullable_part(at(&mut builder, "value"), &value);
    builder.finish()
}
