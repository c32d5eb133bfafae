//! All values of many types, compared.

use std::collections::{HashMap, HashSet};

use super::{
    full,
    shape::{Shape, Value},
    text,
};

#[test]
fn no_two_values_of_a_shallow_type_meet() {
    let texts = ["", "a", "/", "~", "%7E", "#", "(", "a)", "A", "B()"];
    assert_no_collision(&shapes(2), &texts, 20_000, 110);
}

#[test]
fn no_two_values_of_a_deep_type_meet() {
    let texts = ["", "~"];
    let (largest, at_least) = if full() { (500, 10_000) } else { (50, 3_000) };
    assert_no_collision(&shapes(3), &texts, largest, at_least);
}

/// The reason for the parentheses: without them these two are `~/~/~`.
#[test]
fn nullable_neighbours_do_not_trade_absences() {
    let pair = || {
        Shape::Text
            .nullable()
            .beside(Shape::Text.nullable())
            .nullable()
    };
    let shape = pair().beside(pair());
    assert_eq!(collision(&shape, &["a"], &text), None);
    let (one, other) = collision(&shape, &["a"], &unwrapped).unwrap();
    assert_eq!(unwrapped(&one), unwrapped(&other));
    assert_ne!(text(&one), text(&other));
}

#[test]
fn the_enumeration_finds_a_naive_join() {
    let shape = Shape::Text.beside(Shape::Text);
    assert!(collision(&shape, &["a", "/", "a/", ""], &naive).is_some());
}

/// Types with more than `largest` values are left out.
fn assert_no_collision(shapes: &[Shape], texts: &[&str], largest: usize, at_least: usize) {
    let mut compared = 0;
    for shape in shapes.iter().filter(|shape| shape.count(texts) <= largest) {
        assert_eq!(collision(shape, texts, &text), None, "{shape:?}");
        compared += 1;
    }
    assert!(
        compared >= at_least,
        "only {compared} of {} types were compared",
        shapes.len()
    );
}

/// Two values of one text.
fn collision(
    shape: &Shape,
    texts: &[&str],
    text: &impl Fn(&Value) -> String,
) -> Option<(Value, Value)> {
    let mut seen = HashMap::new();
    let values: HashSet<_> = shape.values(texts).into_iter().collect();
    values.into_iter().find_map(|value| {
        let earlier = seen.insert(text(&value), value.clone())?;
        Some((earlier, value))
    })
}

/// All types up to a depth.
fn shapes(depth: usize) -> Vec<Shape> {
    let mut shapes = vec![Shape::Text, Shape::Nothing];
    for _ in 0..depth {
        let mut deeper = vec![Shape::Text, Shape::Nothing];
        for shape in &shapes {
            deeper.push(shape.clone().nullable());
            deeper.push(shape.clone().in_enum());
            deeper.extend(
                shapes
                    .iter()
                    .map(|other| shape.clone().beside(other.clone())),
            );
        }
        shapes = deeper;
    }
    shapes
}

/// Joins without encoding.
pub(super) fn naive(value: &Value) -> String {
    written(value, &str::to_owned)
}

/// Encodes, but lets an absent value begin a present one.
pub(super) fn unwrapped(value: &Value) -> String {
    written(value, &|plain| text(plain))
}

fn written(value: &Value, encoded: &impl Fn(&str) -> String) -> String {
    let inner = |value| written(value, encoded);
    match value {
        Value::Text(text) => encoded(text),
        Value::Nothing => String::new(),
        Value::Nullable(None) => "~".to_owned(),
        Value::Nullable(Some(value)) => inner(value),
        Value::Pair(first, second) => format!("{}/{}", inner(first), inner(second)),
        Value::Variant(name, payload) if payload.is_empty() => (*name).to_owned(),
        Value::Variant(name, payload) => {
            let payload: Vec<_> = payload.iter().map(inner).collect();
            format!("{name}({})", payload.join("/"))
        }
    }
}
