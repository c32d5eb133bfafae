//! Binds the roots of key parts to the handler's parameters.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};

use super::{Assertion, BoundPath, KeyPath, Place};
use crate::diagnostics;
use crate::handler::Handler;
use crate::mistakes::Errors;

/// Every root becomes the very name that the signature holds, so that it
/// resolves also in handlers that a macro made.
pub(crate) fn bind(path: &KeyPath, handler: &Handler, errors: &mut Errors) -> Option<BoundPath> {
    let is_known = |root: &&Ident| handler.is_root(root);
    if path.assertion == Assertion::None && !path.roots.iter().all(|root| is_known(&root)) {
        for root in path.roots.iter().filter(|root| !is_known(root)) {
            errors.push(diagnostics::unknown_parameter(root, &path.text, handler));
        }
        return None;
    }
    Some(BoundPath {
        tokens: resolve(path.tokens.clone(), handler),
        changeable: if path.is_plain {
            Vec::new()
        } else {
            path.roots.clone()
        },
        text: path.text.clone(),
        written: path.written.clone(),
        presence: path.presence,
        assertion: path.assertion,
        span: path.span,
    })
}

fn resolve(tokens: TokenStream, handler: &Handler) -> TokenStream {
    let mut place = Place::default();
    tokens
        .into_iter()
        .map(|token| {
            let may_be_variable = place.may_be_variable();
            place.pass(&token);
            match token {
                TokenTree::Ident(ident) if may_be_variable => {
                    TokenTree::Ident(resolve_name(ident, handler))
                }
                TokenTree::Group(group) => {
                    let stream = resolve(group.stream(), handler);
                    let mut resolved = Group::new(group.delimiter(), stream);
                    resolved.set_span(group.span());
                    resolved.into()
                }
                token => token,
            }
        })
        .collect()
}

/// Takes the hygiene of the signature's name, and keeps the place.
fn resolve_name(ident: Ident, handler: &Handler) -> Ident {
    let known = if ident == "self" {
        handler.receiver().map(|receiver| receiver.span)
    } else {
        handler.name(&ident).map(Ident::span)
    };
    match known {
        Some(known) => {
            let mut resolved = ident.clone();
            resolved.set_span(ident.span().resolved_at(known));
            resolved
        }
        None => ident,
    }
}
