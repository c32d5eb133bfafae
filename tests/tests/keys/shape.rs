//! Types and values as data, to compare the texts of many.

use idempotent_runtime::{KeyText, KeyWriter};

/// A type.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Text,
    /// A hand-written type that pushes nothing.
    Nothing,
    Nullable(Box<Shape>),
    /// A tuple or struct.
    Pair(Box<Shape>, Box<Shape>),
    /// An enum with the variants `A`, `B(payload)` and `C(payload, text)`.
    Enum(Box<Shape>),
}

/// A value of one of them.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum Value {
    Text(String),
    Nothing,
    Nullable(Option<Box<Value>>),
    Pair(Box<Value>, Box<Value>),
    Variant(&'static str, Vec<Value>),
}

impl Shape {
    pub(super) fn nullable(self) -> Self {
        Self::Nullable(Box::new(self))
    }

    pub(super) fn beside(self, other: Self) -> Self {
        Self::Pair(Box::new(self), Box::new(other))
    }

    pub(super) fn in_enum(self) -> Self {
        Self::Enum(Box::new(self))
    }

    /// How many values there are.
    pub(super) fn count(&self, texts: &[&str]) -> usize {
        match self {
            Self::Text => texts.len(),
            Self::Nothing => 1,
            Self::Nullable(shape) => 1 + shape.count(texts),
            Self::Pair(first, second) => first.count(texts).saturating_mul(second.count(texts)),
            Self::Enum(payload) => 1 + payload.count(texts).saturating_mul(1 + texts.len()),
        }
    }

    /// All values with these texts.
    pub(super) fn values(&self, texts: &[&str]) -> Vec<Value> {
        match self {
            Self::Text => texts
                .iter()
                .map(|&text| Value::Text(text.to_owned()))
                .collect(),
            Self::Nothing => vec![Value::Nothing],
            Self::Nullable(shape) => {
                let present = shape
                    .values(texts)
                    .into_iter()
                    .map(|value| Some(Box::new(value)));
                std::iter::once(None)
                    .chain(present)
                    .map(Value::Nullable)
                    .collect()
            }
            Self::Pair(first, second) => pairs(first, second, texts)
                .map(|(first, second)| Value::Pair(Box::new(first), Box::new(second)))
                .collect(),
            Self::Enum(payload) => {
                let mut values = vec![Value::Variant("A", vec![])];
                let payloads = payload.values(texts).into_iter();
                values.extend(payloads.map(|value| Value::Variant("B", vec![value])));
                values.extend(
                    pairs(payload, &Self::Text, texts)
                        .map(|(first, second)| Value::Variant("C", vec![first, second])),
                );
                values
            }
        }
    }

    /// The value that `tape` spells; an empty tape reads as zeros.
    pub(super) fn spelled(&self, tape: &mut impl Iterator<Item = usize>) -> Value {
        let mut below = |bound: usize| tape.next().unwrap_or(0) % bound;
        match self {
            Self::Text => {
                let length = below(4);
                Value::Text((0..length).map(|_| PIECES[below(PIECES.len())]).collect())
            }
            Self::Nothing => Value::Nothing,
            Self::Nullable(shape) => {
                Value::Nullable((below(3) != 0).then(|| Box::new(shape.spelled(tape))))
            }
            Self::Pair(first, second) => Value::Pair(
                Box::new(first.spelled(tape)),
                Box::new(second.spelled(tape)),
            ),
            Self::Enum(payload) => match below(3) {
                0 => Value::Variant("A", vec![]),
                1 => Value::Variant("B", vec![payload.spelled(tape)]),
                _ => Value::Variant("C", vec![payload.spelled(tape), Self::Text.spelled(tape)]),
            },
        }
    }
}

fn pairs<'a>(
    first: &Shape,
    second: &'a Shape,
    texts: &'a [&str],
) -> impl Iterator<Item = (Value, Value)> + use<'a> {
    let seconds = second.values(texts);
    first.values(texts).into_iter().flat_map(move |first| {
        seconds
            .clone()
            .into_iter()
            .map(move |second| (first.clone(), second))
    })
}

impl KeyText for Value {
    fn write_key(&self, writer: &mut KeyWriter) {
        match self {
            Self::Text(text) => writer.push_str(text),
            Self::Nothing => {}
            Self::Nullable(value) => writer.push_nullable(value.as_deref()),
            Self::Pair(first, second) => {
                writer.push(&**first);
                writer.push(&**second);
            }
            Self::Variant(name, payload) => writer.push_variant(name, |writer| {
                for value in payload {
                    writer.push(value);
                }
            }),
        }
    }
}

/// What a text is made of: separators, signs of our own, and what databases stumble over.
pub(super) const PIECES: &[&str] = &[
    "a",
    "A",
    "B",
    "/",
    "~",
    "(",
    ")",
    "%",
    "%2F",
    "%7E",
    "#",
    ":",
    ",",
    "|",
    "\\",
    "'",
    "\u{1f}",
    "\0",
    " ",
    "e",
    "\u{301}",
    "é",
    "🎩",
    "👩\u{200d}💻",
    "ก",
    "ำ",
    "ส",
    "1",
    "１",
    "longer than the others",
];
