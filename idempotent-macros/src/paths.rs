//! Paths into the runtime, and spans.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::Path;

use crate::listing::Listing;

/// What is known of the runtime.
#[derive(Clone)]
pub(crate) struct Runtime {
    /// Where it lives, if not at `::idempotent_runtime`: what `crate = …` says.
    path: Option<Path>,
    pub(crate) listing: Listing,
}

impl Runtime {
    pub(crate) fn new(path: Option<&Path>, listing: Listing) -> Self {
        Self {
            path: path.cloned(),
            listing,
        }
    }

    /// The root, with the span of what it is used for; a written one with its own.
    pub(crate) fn root(&self, span: Span) -> TokenStream {
        let written = self.path.as_ref().map(ToTokens::to_token_stream);
        written.unwrap_or_else(|| quote_spanned!(span=> ::idempotent_runtime))
    }

    /// A path to an item of `__private`, with the span of what it is used for.
    pub(crate) fn private(&self, name: &str, span: Span) -> TokenStream {
        let root = self.root(span);
        let name = syn::Ident::new(name, span);
        quote_spanned!(span=> #root::__private::#name)
    }
}

/// A place in the user's code, without its names: rustc then offers no fix that
/// would overwrite a whole literal.
pub(crate) fn mixed(span: Span) -> Span {
    Span::mixed_site().located_at(span)
}
