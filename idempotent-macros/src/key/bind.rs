//! Binds the roots of key parts to the handler's parameters.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};

use super::{Assertion, BoundPath, KeyPath};
use crate::diagnostics::{self, Errors};
use crate::handler::Handler;

/// Every root becomes the very name that the signature holds, so that it
/// resolves also in handlers that a macro made.
pub(crate) fn bind(path: KeyPath, handler: &Handler, errors: &mut Errors) -> Option<BoundPath> {
    if path.assertion == Assertion::None {
        let mut is_known = true;
        for root in &path.roots {
            if root == "self" && handler.receiver().is_some() || handler.name(root).is_some() {
                continue;
            }
            errors.push(diagnostics::unknown_parameter(root, &path.text, handler));
            is_known = false;
        }
        if !is_known {
            return None;
        }
    }
    let KeyPath {
        tokens,
        text,
        presence,
        assertion,
        span,
        ..
    } = path;
    Some(BoundPath {
        tokens: resolve(tokens, handler),
        text,
        presence,
        assertion,
        span,
    })
}

fn resolve(tokens: TokenStream, handler: &Handler) -> TokenStream {
    let mut is_member = false;
    tokens
        .into_iter()
        .map(|token| match token {
            TokenTree::Ident(ident) if !is_member => TokenTree::Ident(resolve_name(ident, handler)),
            TokenTree::Group(group) => {
                is_member = false;
                let mut resolved = Group::new(group.delimiter(), resolve(group.stream(), handler));
                resolved.set_span(group.span());
                resolved.into()
            }
            token => {
                is_member = matches!(&token, TokenTree::Punct(punct) if matches!(punct.as_char(), '.' | ':'));
                token
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
