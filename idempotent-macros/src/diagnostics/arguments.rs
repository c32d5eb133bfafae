//! About the arguments.

use proc_macro2::{Span, TokenStream};
use syn::{Error, Ident, LitStr};

use crate::args::EXAMPLES;
use crate::key::spelled;
use crate::mistakes::{list, message, near, spanned};

pub(crate) fn argument_name(span: Span) -> Error {
    message(
        span,
        "an argument starts with its name",
        format!("write for instance `{}`", EXAMPLES[0].1),
    )
}

pub(crate) fn second_string(span: Span) -> Error {
    message(
        span,
        "this string is not part of the key",
        format!("write one string, for instance `{}`", EXAMPLES[0].1),
    )
}

pub(crate) fn unknown_argument(name: &Ident) -> Error {
    let text = name.to_string();
    let known = EXAMPLES.iter().map(|(known, _)| *known);
    let help = near(&text, known.clone()).map_or_else(
        || format!("the arguments are {}", list(known)),
        |known| format!("did you mean `{known}`?"),
    );
    message(
        name.span(),
        format!("unknown argument `{text}` of `#[idempotent]`"),
        help,
    )
}

pub(crate) fn bare_key(first: &TokenStream, parts: &[TokenStream]) -> Error {
    let parts: Vec<String> = parts.iter().map(spelled).collect();
    spanned(
        first,
        format!("`{}` stands outside the key", parts.join(", ")),
        format!("write `key({})`", parts.join(", ")),
    )
}

pub(crate) fn repeated_argument(name: &Ident) -> Error {
    message(
        name.span(),
        format!("argument `{name}` is given twice"),
        "keep one of the two",
    )
}

pub(crate) fn argument_shape(name: &Ident, span: Span) -> Error {
    let text = name.to_string();
    let example = EXAMPLES
        .iter()
        .find(|(known, _)| *known == text)
        .map_or("key(event.id)", |(_, example)| example);
    message(
        span,
        format!("`{text}` is not written like this"),
        format!("write for instance `{example}`"),
    )
}

pub(crate) fn missing_comma(span: Span) -> Error {
    message(
        span,
        "two arguments are not separated",
        "write a comma before this one",
    )
}

pub(crate) fn missing_key() -> Error {
    message(
        Span::call_site(),
        "`#[idempotent]` has no `key`",
        format!(
            "name what makes two deliveries the same message, for instance `{}`",
            EXAMPLES[0].1
        ),
    )
}

pub(crate) fn scope_alphabet(scope: &LitStr) -> Error {
    message(
        scope.span(),
        format!("`{}` is not a scope", scope.value()),
        "write 1 to 128 of `A-Z a-z 0-9 _ . : ( ) , -`, for instance `scope = \"orders.accept\"`",
    )
}

pub(crate) fn finer_than_before(span: Span, missing: &[String]) -> Error {
    message(
        span,
        format!(
            "the key has {} beside what it was: one old record would stand for several messages now, \
             and all but one be lost",
            list(missing.iter().map(String::as_str))
        ),
        "remove this `was`: no earlier name can make a key finer",
    )
}

pub(crate) fn same_as_now(span: Span) -> Error {
    message(
        span,
        "this `was` is the name that the handler has now",
        "write the earlier scope, or the earlier parts of the key",
    )
}

pub(crate) fn repeated_was(span: Span) -> Error {
    message(
        span,
        "this earlier name stands twice",
        "keep one of the two",
    )
}

/// `is_now`: it is the scope that the handler has.
pub(crate) fn two_keys_in_scope(span: Span, scope: &str, is_now: bool) -> Error {
    let help = if is_now {
        format!(
            "give the handler another `scope`, and write `was(scope = \"{scope}\", key(...))` for this one"
        )
    } else {
        "keep the one by which the messages that may still come again were processed".to_owned()
    };
    message(
        span,
        format!(
            "two keys share the scope `{scope}`: what one message had for its key may be the key of another, \
             which would be lost"
        ),
        help,
    )
}

pub(crate) fn was_without_scope(span: Span) -> Error {
    message(
        span,
        "the default scope ends with the key: with another key it was another",
        "write `was(scope = \"...\", key(...))` with the scope that stands in the table",
    )
}

pub(crate) fn unread_period(period: &LitStr) -> Error {
    message(
        period.span(),
        format!("`{}` is not a stretch of time", period.value()),
        "write for instance `\"7 days\"`, `\"36 hours\"` or `\"90 minutes\"`, 1 second to 100 years",
    )
}

pub(crate) fn retained_too_short(retain: &LitStr, redelivery: &LitStr) -> Error {
    message(
        retain.span(),
        format!(
            "keys are kept for `{}`, and the broker can deliver again after `{}`: \
             such a message would run twice",
            retain.value(),
            redelivery.value()
        ),
        "keep them longer than the latest redelivery",
    )
}

pub(crate) fn excluded_by_each(name: &str, span: Span) -> Error {
    message(
        span,
        format!("`{name}` speaks of one message, and `each` of many"),
        format!(
            "remove one of the two; without `each` the handler takes one message, and may have `{name}`"
        ),
    )
}

pub(crate) fn unknown_busy(busy: &LitStr) -> Error {
    let value = busy.value();
    let help = match near(&value, ["wait", "fail"].into_iter()) {
        Some(known) => format!("did you mean `{known}`?"),
        None => "a second delivery can `wait` for the first, or `fail` at once".to_owned(),
    };
    message(busy.span(), format!("unknown `busy = \"{value}\"`"), help)
}

pub(crate) fn unknown_guard(guard: &LitStr) -> Error {
    let value = guard.value();
    let help = match near(&value, ["verify", "savepoint"].into_iter()) {
        Some(known) => format!("did you mean `{known}`?"),
        None => "the guards are `verify` and `savepoint`".to_owned(),
    };
    message(guard.span(), format!("unknown guard `{value}`"), help)
}

pub(crate) fn table_name(table: &LitStr) -> Error {
    message(
        table.span(),
        format!("`{}` is not a table name", table.value()),
        "write `name` or `schema.name` in lower-case letters, digits and `_`",
    )
}

pub(crate) fn skipped_twice(name: &Ident) -> Error {
    message(
        name.span(),
        format!("`{name}` is skipped twice"),
        "keep one of the two",
    )
}

pub(crate) fn skipped_self(name: &Ident) -> Error {
    message(name.span(), "`self` needs no `skip`", "remove it")
}
