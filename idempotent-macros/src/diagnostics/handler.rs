//! About the handler.

use proc_macro2::Span;
use syn::{Attribute, Error, Ident, Signature, Type};

use crate::mistakes::{message, spanned};

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
        "write `async fn`, and return the `Result` itself",
    )
}

pub(crate) fn no_result(sig: &Signature) -> Error {
    message(
        sig.ident.span(),
        format!("`{}` does not return a `Result`", sig.ident),
        "write `-> Result<(), E>` with an `E` that is `From<idempotent_runtime::Error>`",
    )
}

pub(crate) fn outward_type(value: &Type) -> Error {
    spanned(
        value,
        "the handler returns what is inside the `Outcome`, which is the attribute's to add",
        "write `Result<T, E>`: the caller sees `Result<Outcome<T>, E>`",
    )
}

pub(crate) fn unread_signature(error: &Error) -> Error {
    message(
        error.span(),
        format!("the signature of the handler cannot be read: {error}"),
        "complete it: the key needs its parameters",
    )
}

pub(crate) fn too_deep(span: Span) -> Error {
    message(
        span,
        "this item is nested too deeply to be read",
        "give its longest type a name",
    )
}

pub(crate) fn second_attribute(attribute: &Attribute) -> Error {
    spanned(
        attribute.path(),
        "`#[idempotent]` stands twice on this handler",
        "keep one of the two",
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

pub(crate) fn not_a_transaction(ty: &Type, what: &str, name: &Ident) -> Error {
    spanned(
        ty,
        format!(
            "the {what} `{name}` in place of the transaction would commit the key apart from the effect"
        ),
        "take `tx: &mut sqlx::Transaction<'_, DB>`: the caller commits it",
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

pub(crate) fn hidden_pattern(span: Span) -> Error {
    message(
        span,
        "`#[async_trait]` takes this pattern out of the signature, where the key looks for names",
        "name this parameter, and take it apart in the body; a name `_...` says that it does not tell messages apart",
    )
}

pub(crate) fn scope_required(name: &str, why: &str) -> Error {
    let example = if name.is_ascii() && name.len() < 40 {
        name
    } else {
        "accept"
    };
    message(
        Span::call_site(),
        format!("`{name}` needs a `scope`: {why}"),
        format!(
            "write for instance `scope = \"orders.{example}\"`, which no other handler has, and which \
             stays when the code moves"
        ),
    )
}
