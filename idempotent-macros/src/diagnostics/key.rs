//! About the key, and what it makes of the parameters.

use proc_macro2::Span;
use quote::ToTokens;
use syn::{Error, ExprTuple, Ident, LitStr, Type};

use crate::handler::Handler;
use crate::key::{Instability, Tail};
use crate::mistakes::{list, message, near, spanned};

pub(crate) fn empty_part(span: Span) -> Error {
    message(
        span,
        "a part of the key is empty",
        "write a path from a parameter, for instance `event.id`",
    )
}

pub(crate) fn repeated_part(span: Span, text: &str) -> Error {
    message(
        span,
        format!("`{text}` stands twice in the key"),
        "keep one of the two",
    )
}

pub(crate) fn quoted_part(quoted: &LitStr) -> Error {
    let text = quoted.token();
    message(
        quoted.span(),
        format!("`{text}` in the key is a string, not a path"),
        format!("remove the quotes, or write `key = {text}`"),
    )
}

pub(crate) fn constant(part: impl ToTokens, text: &str) -> Error {
    spanned(
        part,
        format!("`{text}` in the key names no parameter, so that it cannot tell messages apart"),
        "name a field of the message, for instance `event.id`",
    )
}

pub(crate) fn leaves_the_key(span: Span, word: &str) -> Error {
    message(
        span,
        format!("`{word}` in the key, which is made before the handler can wait or return"),
        "have the caller compute the value, and take it as a parameter",
    )
}

pub(crate) fn not_a_path(part: impl ToTokens, text: &str) -> Error {
    spanned(
        part,
        format!("`{text}` in the key is not a path from a parameter"),
        "write a field, method call or literal index, for instance `event.id`; \
         any other expression stands in `stable(...)`, with a `scope` beside `key`",
    )
}

pub(crate) fn long_part(span: Span) -> Error {
    message(
        span,
        "the key is too long to be read",
        "have the caller compute the value, and take it as a parameter",
    )
}

pub(crate) fn tuple_part(tuple: &ExprTuple, text: &str, parts: &[String]) -> Error {
    spanned(
        tuple,
        format!("`{text}` in the key is a tuple, not a path"),
        format!("write the parts side by side, `{}`", parts.join(", ")),
    )
}

pub(crate) fn unasserted_call(call: impl ToTokens, text: &str) -> Error {
    spanned(
        call,
        format!(
            "`{text}` in the key may give another value at every delivery, so that no duplicate is found"
        ),
        format!(
            "name a field of the message; if it gives the same value at every delivery of a message, \
             write `stable({text})`, and beside `key` a scope, for instance `scope = \"orders.accept\"`"
        ),
    )
}

pub(crate) fn formatted_part(call: impl ToTokens, text: &str, values: &[String]) -> Error {
    let help = if values.is_empty() {
        "name a field of the message, for instance `event.id`".to_owned()
    } else {
        format!(
            "write the values as parts of their own, for instance `key({})`",
            values.join(", ")
        )
    };
    spanned(
        call,
        format!("`{text}` in the key joins parts, so that different messages may share a text"),
        help,
    )
}

pub(crate) fn captured(span: Span, names: &[String]) -> Error {
    message(
        span,
        format!(
            "a format string in the key names {}, where no parameter is looked for",
            list(names.iter().map(String::as_str))
        ),
        format!(
            "write `key({})`: the parts are joined without ambiguity",
            names.join(", ")
        ),
    )
}

pub(crate) fn fresh_value(span: Span, text: &str) -> Error {
    message(
        span,
        format!(
            "`{text}` in the key gives another value at every delivery, so that no duplicate is found"
        ),
        "name the id that the message was given by its producer, for instance `event.id`",
    )
}

/// `written` is the part with its wrappers.
pub(crate) fn unstable_name(tail: &Tail, instability: Instability, written: &str) -> Error {
    message(
        tail.span,
        unstable(&tail.name, instability),
        format!(
            "name the id that the message was given by its producer, for instance `event.id`; \
             if the producer sets `{name}` once, write `stable({written})`",
            name = tail.name
        ),
    )
}

/// What is wrong with a name in a key, of a part or of a field.
pub(crate) fn unstable(name: &str, instability: Instability) -> String {
    let what = match instability {
        Instability::Clock => "a clock",
        Instability::Counter => "a retry counter or flag",
        Instability::Delivery => "a handle of one delivery",
        Instability::Trace => "part of a trace",
        Instability::Random => "a random value",
    };
    format!(
        "`{name}` in the key is, by its name, {what}: a redelivery may bring another value, and would run again"
    )
}

/// What is wrong with an offset in a key, of a part or of a field.
pub(crate) fn incomplete_offset(text: &str) -> String {
    format!(
        "`{text}` is in the key without its partition: each partition counts from 0, and the message \
         at the same offset of another one would be skipped as a duplicate"
    )
}

pub(crate) fn offset_alone(tail: &Tail, text: &str, written: &str) -> Error {
    let partition = text
        .strip_suffix(&tail.name)
        .map_or_else(String::new, |path| {
            format!(", for instance `{path}partition`")
        });
    message(
        tail.span,
        incomplete_offset(text),
        format!("add the partition{partition}; if there is only one, write `stable({written})`"),
    )
}

pub(crate) fn absent_default(span: Span, text: &str, option: &str) -> Error {
    message(
        span,
        format!(
            "`{text}` in the key gives all messages without it one key, and all but the first would be skipped"
        ),
        format!(
            "write `required({option})`, so that such a message is an error, or `nullable({option})` \
             if they are one message"
        ),
    )
}

pub(crate) fn unknown_wrapper(name: &Ident, known: &str) -> Error {
    message(
        name.span(),
        format!("unknown wrapper `{name}` in the key"),
        format!("did you mean `{known}`?"),
    )
}

pub(crate) fn keyword_in_path(keyword: &Ident) -> Error {
    message(
        keyword.span(),
        format!("`{keyword}` in the key is a keyword"),
        format!("write `r#{keyword}`"),
    )
}

pub(crate) fn wrapper_arity(name: &Ident) -> Error {
    message(
        name.span(),
        format!("`{name}` stands around one part of the key"),
        format!("write `{name}(event.id)`"),
    )
}

pub(crate) fn wrapped_twice(span: Span) -> Error {
    message(
        span,
        "a part of the key is wrapped twice",
        "write `stable(...)` once, and one of `required(...)` and `nullable(...)`",
    )
}

pub(crate) fn unknown_parameter(name: &Ident, part: &str, handler: &Handler) -> Error {
    let text = name.to_string();
    let place = if part == text {
        String::new()
    } else {
        format!(", for the key's `{part}`")
    };
    let fact = if text == "self" {
        format!("`{}` has no `self`{place}", handler.sig.ident)
    } else {
        format!(
            "no parameter named `{text}` in `{}`{place}",
            handler.sig.ident
        )
    };
    let names: Vec<String> = handler.names().map(ToString::to_string).collect();
    let help = match near(&text, names.iter().map(String::as_str)) {
        Some(known) => format!("did you mean `{known}`?"),
        None if names.is_empty() => "the handler has no parameters".to_owned(),
        None => format!(
            "the parameters are {}",
            list(names.iter().map(String::as_str))
        ),
    };
    message(name.span(), fact, help)
}

/// `key` is the key that would have it.
pub(crate) fn too_coarse(span: Span, name: &Ident, key: &str) -> Error {
    message(
        span,
        format!(
            "`{name}` is not part of the key: one event fanned out to two of them \
             would run for the first, and be skipped for the second"
        ),
        format!(
            "write `{key}`; if it does not tell messages apart, write `skip({name})` beside `key`"
        ),
    )
}

/// Of a batch: the key of each message says nothing of that message.
pub(crate) fn batch_without_element(element: &Ident) -> Error {
    message(
        element.span(),
        format!("`{element}` is not part of the key: all messages of a batch would be one"),
        format!("name what tells them apart, for instance `key({element}.id)`"),
    )
}

pub(crate) fn batch_in_key(list: &Ident, element: &Ident) -> Error {
    message(
        list.span(),
        format!("`{list}` in the key is the whole batch, which is another at every delivery"),
        format!("name one message, `{element}`"),
    )
}

pub(crate) fn batch_as_element(name: &Ident) -> Error {
    message(
        name.span(),
        format!("`{name}` is both the batch and one message of it"),
        format!("give one message a name of its own, for instance `each = \"message in {name}\"`"),
    )
}

pub(crate) fn no_vec(list: &Type, element: &Ident) -> Error {
    spanned(
        list,
        format!("the batch that `{element}` is of is not a `Vec`"),
        "take `Vec<...>`: the body gets the messages that are new",
    )
}

pub(crate) fn in_key_and_skipped(name: &Ident) -> Error {
    message(
        name.span(),
        format!("`{name}` is both in the key and skipped"),
        "remove it from `skip`",
    )
}

pub(crate) fn compared_and_skipped(name: &Ident) -> Error {
    message(
        name.span(),
        format!("`{name}` is both in the fingerprint and skipped"),
        "remove it from `skip`",
    )
}

pub(crate) fn skipped_transaction(name: &Ident) -> Error {
    message(
        name.span(),
        format!("`{name}` is the transaction, which is never part of the key"),
        "remove it from `skip`",
    )
}

pub(crate) fn transaction_in_key(name: &Ident) -> Error {
    message(
        name.span(),
        format!("`{name}` is the transaction, not part of the message"),
        "name a field of the message",
    )
}

pub(crate) fn bound_name_taken(name: &Ident) -> Error {
    message(
        name.span(),
        format!("`bind` would hide the parameter `{name}`"),
        "choose another name, for instance `bind = claim`",
    )
}
