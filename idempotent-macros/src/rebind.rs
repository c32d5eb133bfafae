//! Parameters that are `mut`: the body changes them, not the frame around it.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Attribute, FnArg, Pat, Token, parse_quote};

use crate::handler::Handler;
use crate::key::BoundPath;

/// `mut name: T` becomes `name: T`, and `let mut name = name;` in the body, which
/// is what changes it. Where the key may, too, both are `mut`, needed or not.
pub(crate) fn rebind(handler: &mut Handler, key: &[&BoundPath]) -> TokenStream {
    let mut rebound = TokenStream::new();
    for input in &mut handler.sig.inputs {
        let FnArg::Typed(typed) = input else {
            continue;
        };
        let Pat::Ident(pat) = &mut *typed.pat else {
            continue;
        };
        let (name, Some(mutability)) = (&pat.ident, pat.mutability) else {
            continue;
        };
        let may_change = |part: &&BoundPath| part.changeable.contains(name);
        let allow = key
            .iter()
            .any(may_change)
            .then(|| -> Attribute { parse_quote!(#[allow(unused_mut)]) });
        rebound.extend(quote!(#allow let #mutability #name = #name;));
        match allow {
            Some(allow) => typed.attrs.push(allow),
            None => pat.mutability = None,
        }
    }
    rebound
}

/// `mut tx` is the body's to change, which has a `tx` of its own.
pub(crate) fn take_mutability(handler: &mut Handler, tx: &Ident) -> Option<Token![mut]> {
    handler.sig.inputs.iter_mut().find_map(|input| match input {
        FnArg::Typed(typed) => match &mut *typed.pat {
            Pat::Ident(pat) if pat.ident == *tx => pat.mutability.take(),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    })
}
