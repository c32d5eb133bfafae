//! Every message of the derive. First line: the fact; second: what to write.

use core::fmt::Display;

use proc_macro2::Span;
use syn::Error;

use super::arguments::Place;

/// Collects mistakes, so that all are reported at once.
#[derive(Default)]
pub(super) struct Errors(Option<Error>);

impl Errors {
    pub(super) fn push(&mut self, error: Error) {
        match &mut self.0 {
            None => self.0 = Some(error),
            Some(errors) => errors.combine(error),
        }
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        self.0.map_or(Ok(()), Err)
    }
}

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
        format_args!("`{name}` has no fields, so all its values would share one key"),
        "give it the field that tells two messages apart",
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

pub(super) fn malformed(span: Span) -> Error {
    message(
        span,
        "expected an argument, such as `stable`, or `name = \"...\"`",
        "separate arguments with commas",
    )
}

pub(super) fn unknown_argument(span: Span, name: &str, place: Place) -> Error {
    let known = place.arguments();
    let help = match known.iter().find(|argument| alike(name, argument.name())) {
        Some(argument) => format!("did you mean `{}`?", argument.name()),
        None => format!("{} takes {}", place.article(), place.listed()),
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

fn message(span: Span, fact: impl Display, help: impl Display) -> Error {
    Error::new(span, format_args!("{fact}\nhelp: {help}"))
}

/// Whether one edit makes `written` from `known`, or two neighbours changed places.
fn alike(written: &str, known: &str) -> bool {
    let (written, known): (Vec<_>, Vec<_>) = (written.chars().collect(), known.chars().collect());
    let prefix = written
        .iter()
        .zip(&known)
        .take_while(|(a, b)| a == b)
        .count();
    let tail = |word: &[char], from: usize| word.iter().skip(from).copied().collect::<Vec<_>>();
    let swapped: Vec<_> = tail(&written, prefix).into_iter().take(2).rev().collect();
    tail(&written, prefix + 1) == tail(&known, prefix + 1)
        || tail(&written, prefix) == tail(&known, prefix + 1)
        || tail(&written, prefix + 1) == tail(&known, prefix)
        || (tail(&known, prefix).starts_with(&swapped)
            && tail(&written, prefix + 2) == tail(&known, prefix + 2))
}
