//! Every message of the attribute, and what the derive's messages are made with. First line: the fact. Second: what to write.

use std::fmt::Display;

use proc_macro2::Span;
use quote::ToTokens;
use syn::{Error, Ident, LitStr, Signature, Type};

use crate::args::EXAMPLES;
use crate::handler::Handler;

/// Collects mistakes, so that all are reported at once.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn push(&mut self, error: Error) {
        self.0 = Some(std::mem::take(self).and(error));
    }

    /// All mistakes so far, and one more.
    pub(crate) fn and(self, error: Error) -> Error {
        match self.0 {
            None => error,
            Some(mut errors) => {
                errors.combine(error);
                errors
            }
        }
    }

    /// Ends a stage: nothing that is reported later is the consequence of
    /// something reported so far.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.0.map_or(Ok(()), Err)
    }
}

// The arguments.

pub(crate) fn argument_name(span: Span) -> Error {
    message(
        span,
        "an argument starts with its name",
        format!("write for instance `{}`", EXAMPLES[0].1),
    )
}

pub(crate) fn unknown_argument(name: &Ident) -> Error {
    let text = name.to_string();
    let help = match near(&text, EXAMPLES.iter().map(|(known, _)| *known)) {
        Some(known) => format!("did you mean `{known}`?"),
        None => format!(
            "the arguments are {}",
            list(EXAMPLES.iter().map(|(known, _)| *known))
        ),
    };
    message(
        name.span(),
        format!("unknown argument `{text}` of `#[idempotent]`"),
        help,
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

// The key.

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

pub(crate) fn not_a_path(part: impl ToTokens, text: &str) -> Error {
    spanned(
        part,
        format!("`{text}` in the key is not a path from a parameter"),
        "write a field, method call or literal index, for instance `event.id`; \
         assert any other expression with `stable(...)`",
    )
}

pub(crate) fn unasserted_call(call: impl ToTokens, text: &str) -> Error {
    spanned(
        call,
        format!(
            "`{text}` in the key may give another value at every delivery, so that no duplicate is found"
        ),
        format!(
            "name a field of the message; if it always gives the same value for the same message, write `stable({text})`"
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

pub(crate) fn too_coarse(span: Span, name: &Ident) -> Error {
    message(
        span,
        format!(
            "`{name}` is not part of the key: two calls that differ only in it would count as one message"
        ),
        format!("add it to `key`, or write `skip({name})` if it does not tell messages apart"),
    )
}

pub(crate) fn in_key_and_skipped(name: &Ident) -> Error {
    message(
        name.span(),
        format!("`{name}` is both in the key and skipped"),
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

// The handler.

pub(crate) fn not_a_function(span: Span) -> Error {
    message(
        span,
        "`#[idempotent]` goes on an `async fn`",
        "put it on the handler itself",
    )
}

pub(crate) fn no_body(name: &Ident) -> Error {
    message(
        name.span(),
        format!("`{name}` has no body to make idempotent"),
        "put the attribute on the implementations; here, write the outward type `Result<Outcome<T>, E>`",
    )
}

pub(crate) fn not_async(sig: &Signature) -> Error {
    message(
        sig.fn_token.span,
        format!("`{}` is not `async`", sig.ident),
        "write `async fn`",
    )
}

pub(crate) fn no_result(sig: &Signature) -> Error {
    message(
        sig.ident.span(),
        format!("`{}` does not return a `Result`", sig.ident),
        "write `-> Result<(), E>` with an `E` that is `From<idempotent_runtime::Error>`",
    )
}

pub(crate) fn impl_in_result(ty: &Type) -> Error {
    spanned(
        ty,
        "`impl Trait` in the return type of an idempotent handler",
        "name the type, or box it",
    )
}

pub(crate) fn two_transactions(span: Span) -> Error {
    message(
        span,
        "a second transaction",
        "say which one claims the key: `tx = name`",
    )
}

pub(crate) fn no_transaction(sig: &Signature) -> Error {
    message(
        sig.ident.span(),
        format!("`{}` takes no transaction", sig.ident),
        "the key must be written in the same transaction as the effect: take \
         `tx: &mut sqlx::Transaction<'_, DB>`, or name it with `tx = ...`",
    )
}

pub(crate) fn not_a_transaction(ty: &Type, what: &str) -> Error {
    spanned(
        ty,
        format!("{what} in place of the transaction would commit the key apart from the effect"),
        "take `tx: &mut sqlx::Transaction<'_, DB>`",
    )
}

pub(crate) fn transaction_not_mut(ty: &Type) -> Error {
    spanned(
        ty,
        "the transaction is not taken by `&mut`",
        "take `&mut sqlx::Transaction<'_, DB>`: the caller commits it",
    )
}

pub(crate) fn unnamed_transaction(span: Span) -> Error {
    message(
        span,
        "the transaction has no name to claim the key with",
        "name it, for instance `_tx`",
    )
}

pub(crate) fn scope_required(why: &str) -> Error {
    message(
        Span::call_site(),
        format!("{why}, so that its default scope would not be its own"),
        "write `scope = \"...\"`, a name that stays when the code moves",
    )
}

pub(crate) fn message(span: Span, fact: impl Display, help: impl Display) -> Error {
    Error::new(span, format!("{fact}\nhelp: {help}"))
}

fn spanned(tokens: impl ToTokens, fact: impl Display, help: impl Display) -> Error {
    Error::new_spanned(tokens, format!("{fact}\nhelp: {help}"))
}

pub(crate) fn list<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The known name that is nearest to the written one, if any is near.
pub(crate) fn near<'n>(written: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let allowed = written.chars().count().div_ceil(4).min(3);
    known
        .map(|name| (distance(written, name), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many letters are added, removed, replaced or swapped with their
/// neighbour (optimal string alignment).
fn distance(written: &str, known: &str) -> usize {
    let known: Vec<char> = known.chars().collect();
    let (mut before, mut last): (Vec<usize>, Vec<usize>) =
        (Vec::new(), (0..=known.len()).collect());
    let mut previous = None;
    for (row, letter) in written.chars().enumerate() {
        let mut current = vec![row + 1];
        let mut known_previous = None;
        for (column, &other) in known.iter().enumerate() {
            let at =
                |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX - 1);
            let mut best = at(&last, column) + usize::from(letter != other);
            best = best
                .min(at(&last, column + 1) + 1)
                .min(at(&current, column) + 1);
            if column > 0 && previous == Some(other) && known_previous == Some(letter) {
                best = best.min(at(&before, column - 1) + 1);
            }
            current.push(best);
            known_previous = Some(other);
        }
        previous = Some(letter);
        before = std::mem::replace(&mut last, current);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{distance, near};

    #[test]
    fn distances() {
        for (written, known, expected) in [
            ("key", "key", 0),
            ("kye", "key", 1),
            ("mgs", "msg", 1),
            ("", "key", 3),
            ("scop", "scope", 1),
            ("x", "scope", 5),
        ] {
            assert_eq!(distance(written, known), expected, "{written} {known}");
        }
    }

    #[test]
    fn only_near_names_are_suggested() {
        assert_eq!(near("mgs", ["tx", "msg"].into_iter()), Some("msg"));
        assert_eq!(near("evnet", ["tx", "event"].into_iter()), Some("event"));
        assert_eq!(near("order", ["tx", "msg"].into_iter()), None);
        assert_eq!(near("m", ["tx", "msg"].into_iter()), None);
    }
}
