//! Fields that count, but would not be the same at every delivery.

use syn::Attribute;

use super::defaults::{Absent, FreshDefault};
use super::diagnostics;
use super::input::{CountedFields, Field, Shape};
use crate::key::{Assertion, Instability, Tail, is_offset, names_partition};
use crate::mistakes::Errors;

pub(super) fn check(shape: &Shape<'_>, attributes: &[Attribute], errors: &mut Errors) {
    let absent = Absent::of(attributes);
    if let Some(default) = FreshDefault::find(attributes, Absent::Refused) {
        errors.push(diagnostics::fresh_default(&default, "a field"));
    }
    for fields in shape.lists() {
        for field in &fields.counted {
            check_default(field, absent, errors);
            check_name(field, fields, errors);
        }
        check_offset(fields, errors);
    }
}

/// No assertion makes this one stable.
fn check_default(field: &Field<'_>, absent: Absent, errors: &mut Errors) {
    if let Some(default) = FreshDefault::find(field.attributes, absent) {
        let name = field.name().map_or_else(
            || "this field".to_owned(),
            |name| format!("`{}`", Tail::named(name).name),
        );
        errors.push(diagnostics::fresh_default(&default, &name));
    }
}

fn check_name(field: &Field<'_>, fields: &CountedFields<'_>, errors: &mut Errors) {
    if let Some(tail) = judged_name(field)
        && let Some(instability) = Instability::of(&tail.name)
    {
        errors.push(diagnostics::unstable_field(
            &tail,
            instability,
            fields.marked,
        ));
    }
}

fn check_offset(fields: &CountedFields<'_>, errors: &mut Errors) {
    let names = fields.counted.iter().filter_map(Field::name);
    let has_partition = names
        .into_iter()
        .any(|name| names_partition(&name.to_string()));
    let offset = fields
        .counted
        .iter()
        .filter_map(judged_name)
        .find(|tail| is_offset(&tail.name));
    if let (Some(tail), false) = (offset, has_partition) {
        errors.push(diagnostics::offset_field(&tail));
    }
}

/// The name, unless the field is asserted to be stable.
fn judged_name(field: &Field<'_>) -> Option<Tail> {
    let is_judged = field.arguments.assertion == Assertion::None;
    field.name().filter(|_| is_judged).map(Tail::named)
}
