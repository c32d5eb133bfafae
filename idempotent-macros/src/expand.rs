//! Arguments and item in, item out.
//!
//! parse → bind → emit; where something is wrong, the function survives with
//! the outward signature that success would have.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::TraitItemFn;

use crate::args::{self, Answer};
use crate::diagnostics;
use crate::emit;
use crate::handler::Handler;
use crate::listing::Listing;
use crate::mistakes::Errors;
use crate::nesting;
use crate::output;
use crate::paths::Runtime;
use crate::plan::plan;

/// Expands `#[idempotent(args)] item`.
pub(crate) fn expand(args: TokenStream, item: &TokenStream, listing: Listing) -> TokenStream {
    let mut errors = Errors::default();
    let args = args::parse(args, &mut errors);
    let runtime = Runtime::new(args.runtime.as_ref(), listing);
    if let Some(span) = nesting::too_deep(signature(item)) {
        errors.push(diagnostics::too_deep(span));
        return verbatim(item, errors);
    }
    let mut handler: Handler = match syn::parse2(item.clone()) {
        Ok(handler) => handler,
        Err(error) => {
            errors.push(error);
            return verbatim(&announced(item, args.answer(), &runtime), errors);
        }
    };
    handler.element = args.each.as_ref().map(|each| each.element.clone());
    while let Some(second) = handler.take_second() {
        errors.push(diagnostics::second_attribute(&second));
    }
    let output = match output::rewrite(&mut handler.sig, args.answer(), &runtime) {
        Ok(output) => output,
        Err(error) => {
            errors.push(error);
            match output::mend(&mut handler.sig, args.answer(), &runtime) {
                Some(output) => output,
                None => return verbatim(item, errors),
            }
        }
    };
    let answer = args.answer();
    let bind = args.bind.clone();
    let bind = bind.filter(|bind| handler.name(bind).is_none());
    match plan(args, &handler, errors) {
        Ok(plan) => emit::handler(&plan, handler, &output, &runtime),
        Err(error) => {
            let function = emit::fallback(answer, bind.as_ref(), handler, &output, &runtime);
            let error = error.into_compile_error();
            quote!(#function #error)
        }
    }
}

/// All but the body.
fn signature(item: &TokenStream) -> impl Iterator<Item = TokenTree> {
    let is_body = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    let tokens = item.clone().into_iter();
    tokens.filter(move |token| !is_body(token))
}

/// A trait's method without a body, as its callers are to see it.
fn announced(item: &TokenStream, answer: Answer, runtime: &Runtime) -> TokenStream {
    match syn::parse2::<TraitItemFn>(item.clone()) {
        Ok(mut method) if method.default.is_none() => {
            output::announce(&mut method.sig, answer, runtime);
            method.into_token_stream()
        }
        _ => item.clone(),
    }
}

/// The item as it was written, with the mistakes.
fn verbatim(item: &TokenStream, errors: Errors) -> TokenStream {
    let error = errors.finish().err().map(syn::Error::into_compile_error);
    quote!(#item #error)
}
