//! Every message of the derive. First line: the fact; second: what to write.

use proc_macro2::Span;
use syn::Error;

use super::defaults::FreshDefault;
use super::keyword::Place;
pub(super) use crate::diagnostics::too_deep;
use crate::diagnostics::{incomplete_offset, unstable};
use crate::key::{Instability, Tail};
use crate::mistakes::{list, message, near};

pub(super) fn union(span: Span) -> Error {
    message(
        span,
        "a union has no key text",
        "derive `KeyPart` for a struct or an enum",
    )
}

pub(super) fn no_fields(span: Span, name: &str) -> Error {
    message(
        span,
        format_args!("`{name}` has no field that counts, so all its values would share one key"),
        "give it the field that tells two messages apart",
    )
}

pub(super) fn transparent_fields(span: Span, name: &str, count: usize) -> Error {
    message(
        span,
        format_args!("`transparent` is for one field, and {count} of `{name}` count"),
        "mark that field with a bare `#[key]`, or remove `transparent`",
    )
}

pub(super) fn transparent_enum(span: Span) -> Error {
    message(
        span,
        "`transparent` is for a struct: an enum's text names the variant",
        "remove `transparent`",
    )
}

/// A field of which the attribute's list of names says that it changes.
pub(super) fn unstable_field(tail: &Tail, instability: Instability, is_marked: bool) -> Error {
    let name = &tail.name;
    let way = if is_marked {
        format!("remove the mark from `{name}`")
    } else {
        "mark the fields that make the key with a bare `#[key]`, so that others do not count"
            .to_owned()
    };
    message(
        tail.span,
        unstable(name, instability),
        format_args!("{way}; if the producer sets `{name}` once, write `#[key(stable)]` on it"),
    )
}

pub(super) fn offset_field(tail: &Tail) -> Error {
    message(
        tail.span,
        incomplete_offset(&tail.name),
        "let the partition count, too; if the key has it beside this type, write `#[key(stable)]`",
    )
}

pub(super) fn fresh_default(default: &FreshDefault, field: &str) -> Error {
    message(
        default.span,
        format_args!(
            "`{}` gives a message without {field} another value at every delivery, so that no duplicate is found",
            default.text
        ),
        "remove the default: what came without its id is then refused, and not processed twice",
    )
}

pub(super) fn same_text(span: Span, text: &str) -> Error {
    message(
        span,
        format_args!("two variants have the text `{text}` in a key"),
        "give this one a text of its own with `#[key(name = \"...\")]`",
    )
}

pub(super) fn empty_name(span: Span) -> Error {
    message(
        span,
        "the name of a variant cannot be empty",
        "write a name, or remove `name`",
    )
}

pub(super) fn marker_outside_fields(span: Span, place: Place) -> Error {
    let place = place.article();
    message(
        span,
        format_args!("a bare `#[key]` marks a field, not {place}"),
        "put it on the fields that count",
    )
}

pub(super) fn not_a_list(span: Span) -> Error {
    message(
        span,
        "`key` is not written with `=`",
        "write `#[key]` or `#[key(...)]`",
    )
}

pub(super) fn empty_list(span: Span) -> Error {
    message(
        span,
        "`#[key()]` says nothing",
        "write `#[key]` on a field that counts, or remove it",
    )
}

pub(super) fn malformed(span: Span) -> Error {
    message(
        span,
        "expected an argument, such as `stable`, or `name = \"...\"`",
        "write names, each with its value if it has one, and commas between them",
    )
}

pub(super) fn unknown_argument(span: Span, name: &str, place: Place) -> Error {
    let help = match near(name, place.arguments()) {
        Some(known) => format!("did you mean `{known}`?"),
        None => format!("{} takes {}", place.article(), list(place.arguments())),
    };
    message(
        span,
        format_args!("unknown argument `{name}` in `#[key(...)]`"),
        help,
    )
}

pub(super) fn misplaced_argument(span: Span, name: &str, place: Place, right: Place) -> Error {
    let (place, right) = (place.article(), right.article());
    message(
        span,
        format_args!("`{name}` says nothing about {place}"),
        format_args!("write it on {right}, or remove it"),
    )
}

pub(super) fn repeated_argument(span: Span, name: &str) -> Error {
    message(
        span,
        format_args!("`{name}` is given twice"),
        "remove one of the two",
    )
}

pub(super) fn needless_value(span: Span, name: &str) -> Error {
    message(
        span,
        format_args!("`{name}` takes no value"),
        format_args!("write `#[key({name})]`"),
    )
}

pub(super) fn string_expected(span: Span) -> Error {
    message(
        span,
        "`name` takes a string",
        "write `#[key(name = \"...\")]`",
    )
}

pub(super) fn path_expected(span: Span) -> Error {
    message(
        span,
        "`crate` takes a path",
        "write `#[key(crate = path::to::idempotent_runtime)]`",
    )
}

pub(super) fn nullable_and_required(span: Span) -> Error {
    message(
        span,
        "`nullable` and `required` exclude each other",
        "keep `required` if absence is an error, `nullable` if `None` is a value of its own",
    )
}
