//! Arguments and item in, item out.
//!
//! parse → bind → emit; where something is wrong, the function survives with
//! the outward signature that success would have.

use proc_macro2::TokenStream;
use quote::quote;

use crate::args;
use crate::emit;
use crate::handler::Handler;
use crate::mistakes::Errors;
use crate::output;
use crate::paths::Runtime;
use crate::plan::plan;

/// Expands `#[idempotent(args)] item`.
pub(crate) fn expand(args: TokenStream, item: &TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let args = args::parse(args, &mut errors);
    let runtime = Runtime::new(args.runtime.as_ref());
    let mut handler: Handler = match syn::parse2(item.clone()) {
        Ok(handler) => handler,
        Err(error) => {
            errors.push(error);
            return verbatim(item, errors);
        }
    };
    let output = match output::rewrite(&mut handler.sig, &runtime) {
        Ok(output) => output,
        Err(error) => {
            errors.push(error);
            match output::mend(&mut handler.sig, &runtime) {
                Some(output) => output,
                None => return verbatim(item, errors),
            }
        }
    };
    let bind = args.bind.clone();
    let bind = bind.filter(|bind| handler.name(bind).is_none());
    match plan(args, &handler, errors) {
        Ok(plan) => emit::handler(&plan, handler, &output, &runtime),
        Err(error) => {
            let function = emit::fallback(bind.as_ref(), handler, &output, &runtime);
            let error = error.into_compile_error();
            quote!(#function #error)
        }
    }
}

/// The item as it was written, with the mistakes.
fn verbatim(item: &TokenStream, errors: Errors) -> TokenStream {
    let error = errors.finish().err().map(syn::Error::into_compile_error);
    quote!(#item #error)
}
