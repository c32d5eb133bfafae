//! Every row of the table in `docs/keys.md`.

use std::{borrow::Cow, net::IpAddr, num::NonZero, sync::Arc, time::SystemTime};

use idempotent_runtime::{
    __private::{Key, KeyBuilder, at, nullable_part, part, required_part},
    KeyPart,
};
use rust_decimal::Decimal;
use serde_json::Value;
use ulid::Ulid;
use uuid::Uuid;

use super::key;

#[derive(Clone, KeyPart)]
struct Pair {
    #[key(nullable)]
    first: Option<String>,
    #[key(nullable)]
    second: Option<String>,
}

#[derive(Clone, KeyPart)]
enum Channel {
    Email,
    Push(u64),
    Sms {
        number: String,
        r#type: String,
    },
    Reply(#[key(nullable)] Option<String>),
    Fäx,
    #[key(name = "Push.2")]
    PushV2,
}

#[test]
fn the_table_of_the_contract_holds() {
    let rows = rows(include_str!("../../../docs/keys.md"));
    assert!(rows.len() > 120, "only {} rows were found", rows.len());
    for row in rows {
        for key in keys(row.ty, row.value) {
            let expected = match row.text {
                "*missing*" => None,
                "*empty*" => Some(""),
                quoted => Some(unquoted(quoted)),
            };
            let actual = key.missing().is_none().then_some(key.text());
            assert_eq!(actual, expected, "{} {}", row.ty, row.value);
        }
    }
}

struct Row<'a> {
    ty: &'a str,
    value: &'a str,
    text: &'a str,
}

fn rows(page: &str) -> Vec<Row<'_>> {
    let (_, table) = page
        .split_once("| type | value | text |\n| --- | --- | --- |\n")
        .unwrap();
    let row = |line| {
        let cells: Vec<&str> = str::split(line, '|').map(str::trim).collect();
        let ["", ty, value, text, ""] = cells[..] else {
            panic!("not a row: {line}")
        };
        Row {
            ty,
            value: unquoted(value),
            text,
        }
    };
    table.lines().map(row).collect()
}

fn unquoted(cell: &str) -> &str {
    cell.strip_prefix('`').unwrap().strip_suffix('`').unwrap()
}

/// The key of a value in each Rust type that stands for `ty`.
fn keys(ty: &str, value: &str) -> Vec<Key> {
    match ty {
        "integer" => return integers(value),
        "float" => return floats(value),
        _ => {}
    }
    let value = parsed(value);
    let string = || value.as_str().unwrap();
    match ty {
        "string" => strings(string()),
        "char" => vec![key(&string().parse::<char>().unwrap())],
        "bool" => vec![key(&value.as_bool().unwrap())],
        "bytes" => byte_strings(&bytes(&value)),
        "uuid" => vec![key(&Uuid::parse_str(string()).unwrap())],
        "ulid" => vec![key(&Ulid::from_string(string()).unwrap())],
        "decimal" => vec![key(&string().parse::<Decimal>().unwrap())],
        "date" => dates(string()),
        "ip" => addresses(string().parse().unwrap()),
        "timestamp" => timestamps(string()),
        "Unix seconds" => vec![key(&system_time(value.as_i64().unwrap()))],
        "nullable string" => nullables(optional_text(&value).as_ref()),
        "required string" => requireds(optional_text(&value).as_deref()),
        "Pair" => vec![key(&pair(&value))],
        "nullable Pair" => nullables((!value.is_null()).then(|| pair(&value)).as_ref()),
        "Channel" => vec![key(&channel(&value))],
        "nullable Channel" => nullables((!value.is_null()).then(|| channel(&value)).as_ref()),
        _ => tuples(ty, value.as_array().unwrap()),
    }
}

fn tuples(ty: &str, members: &[Value]) -> Vec<Key> {
    let [first, second] = members else {
        panic!("two members: {members:?}")
    };
    let integer = |value: &Value| value.as_i64().unwrap();
    match ty {
        "(string, string)" => joined(&plain_text(first), &plain_text(second)),
        "(integer, string)" => joined(&integer(first), &plain_text(second)),
        "(integer, integer)" => joined(&integer(first), &integer(second)),
        "(nullable string, string)" => {
            let mut builder = KeyBuilder::new("test");
            nullable_part(at(&mut builder, "first"), &optional_text(first));
            part(at(&mut builder, "second"), &plain_text(second));
            vec![builder.finish()]
        }
        "(nullable Pair, nullable Pair)" => {
            let mut builder = KeyBuilder::new("test");
            for (name, value) in [("first", first), ("second", second)] {
                nullable_part(
                    at(&mut builder, name),
                    &(!value.is_null()).then(|| pair(value)),
                );
            }
            vec![builder.finish()]
        }
        _ => panic!("a type that this test does not know: {ty}"),
    }
}

/// As two parts, and as a tuple.
fn joined(first: &impl KeyPart, second: &impl KeyPart) -> Vec<Key> {
    let mut builder = KeyBuilder::new("test");
    part(at(&mut builder, "first"), first);
    part(at(&mut builder, "second"), second);
    vec![builder.finish(), key(&(first, second))]
}

fn parsed(value: &str) -> Value {
    let json = |text| serde_json::from_str(text).unwrap();
    match value.rsplit_once(" * ") {
        None => json(value),
        Some((repeated, times)) => match (json(repeated), times.parse().unwrap()) {
            (Value::String(text), times) => Value::String(text.repeat(times)),
            (Value::Array(members), times) => vec![members; times].concat().into(),
            (other, _) => panic!("cannot be repeated: {other}"),
        },
    }
}

fn integers(value: &str) -> Vec<Key> {
    let mut keys = Vec::new();
    macro_rules! in_types {
        ($($ty:ty)*) => {$(
            if let Ok(integer) = value.parse::<$ty>() {
                keys.push(key(&integer));
                keys.extend(NonZero::new(integer).map(|integer| key(&integer)));
            }
        )*};
    }
    in_types!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);
    assert!(!keys.is_empty(), "{value} fits no integer type");
    keys
}

fn floats(value: &str) -> Vec<Key> {
    let value = value.trim_matches('"');
    vec![
        key(&value.parse::<f32>().unwrap()),
        key(&value.parse::<f64>().unwrap()),
    ]
}

fn strings(text: &str) -> Vec<Key> {
    vec![
        key(text),
        key(&text),
        key(&text.to_owned()),
        key(&Cow::from(text)),
        key(&Arc::<str>::from(text)),
        key(&Box::<str>::from(text)),
        key(&&mut text.to_owned()),
    ]
}

fn byte_strings(bytes: &[u8]) -> Vec<Key> {
    let mut keys = vec![
        key(bytes),
        key(&bytes.to_owned()),
        key(&Cow::from(bytes)),
        key(&Arc::<[u8]>::from(bytes)),
    ];
    keys.extend(<[u8; 4]>::try_from(bytes).map(|array| key(&array)));
    keys
}

fn bytes(value: &Value) -> Vec<u8> {
    serde_json::from_value(value.clone()).unwrap()
}

fn dates(text: &str) -> Vec<Key> {
    let date: chrono::NaiveDate = text.parse().unwrap();
    let ordinal = chrono::Datelike::ordinal(&date).try_into().unwrap();
    let year = chrono::Datelike::year(&date);
    vec![
        key(&date),
        key(&time::Date::from_ordinal_date(year, ordinal).unwrap()),
    ]
}

fn addresses(address: IpAddr) -> Vec<Key> {
    let narrow = match address {
        IpAddr::V4(address) => key(&address),
        IpAddr::V6(address) => key(&address),
    };
    vec![key(&address), narrow]
}

fn timestamps(text: &str) -> Vec<Key> {
    let local = chrono::DateTime::parse_from_rfc3339(text).unwrap();
    let nanoseconds =
        i128::from(local.timestamp()) * 1_000_000_000 + i128::from(local.timestamp_subsec_nanos());
    let offset = time::OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).unwrap();
    let hour_east = time::UtcOffset::from_hms(1, 0, 0).unwrap();
    let system = system_time(local.timestamp())
        + std::time::Duration::from_nanos(local.timestamp_subsec_nanos().into());
    vec![
        key(&local),
        key(&local.to_utc()),
        key(&local.naive_utc()),
        key(&offset),
        key(&offset.to_offset(hour_east)),
        key(&time::PrimitiveDateTime::new(offset.date(), offset.time())),
        key(&system),
    ]
}

fn system_time(seconds: i64) -> SystemTime {
    let distance = std::time::Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 {
        SystemTime::UNIX_EPOCH - distance
    } else {
        SystemTime::UNIX_EPOCH + distance
    }
}

fn nullables<T: Clone + KeyPart>(value: Option<&T>) -> Vec<Key> {
    let mut by_value = KeyBuilder::new("test");
    nullable_part(at(&mut by_value, "value"), &value.cloned());
    let mut by_reference = KeyBuilder::new("test");
    nullable_part(at(&mut by_reference, "value"), &&value);
    vec![by_value.finish(), by_reference.finish()]
}

fn requireds(value: Option<&str>) -> Vec<Key> {
    let mut by_value = KeyBuilder::new("test");
    required_part(at(&mut by_value, "value"), &value.map(str::to_owned));
    let mut by_reference = KeyBuilder::new("test");
    required_part(at(&mut by_reference, "value"), &value);
    vec![by_value.finish(), by_reference.finish()]
}

fn plain_text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn optional_text(value: &Value) -> Option<String> {
    (!value.is_null()).then(|| plain_text(value))
}

fn pair(value: &Value) -> Pair {
    Pair {
        first: optional_text(&value[0]),
        second: optional_text(&value[1]),
    }
}

fn channel(value: &Value) -> Channel {
    match (
        value.as_str(),
        value.as_object().and_then(|object| object.iter().next()),
    ) {
        (Some("Email"), _) => Channel::Email,
        (Some("Fäx"), _) => Channel::Fäx,
        (Some("PushV2"), _) => Channel::PushV2,
        (_, Some((name, payload))) => match name.as_str() {
            "Push" => Channel::Push(payload.as_u64().unwrap()),
            "Sms" => Channel::Sms {
                number: plain_text(&payload[0]),
                r#type: plain_text(&payload[1]),
            },
            "Reply" => Channel::Reply(optional_text(payload)),
            _ => panic!("no such variant: {name}"),
        },
        _ => panic!("not a channel: {value}"),
    }
}
