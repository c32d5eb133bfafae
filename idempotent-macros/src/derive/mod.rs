//! `#[derive(KeyPart)]`.

mod arguments;
mod defaults;
mod dependence;
mod diagnostics;
mod emit;
mod input;
mod keyword;
mod stability;

use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;

use self::{arguments::TypeArguments, emit::Target, input::Shape};
use crate::mistakes::Errors;
use crate::nesting;

/// Implements `KeyText` and `KeyPart` for `item`, or reports every mistake in it.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    if let Some(span) = nesting::too_deep(item.clone()) {
        return diagnostics::too_deep(span).into_compile_error();
    }
    let input: DeriveInput = match syn::parse2(item) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };

    let mut errors = Errors::default();
    let arguments = TypeArguments::parse(&input.attrs, &mut errors);
    let shape = Shape::parse(&input, arguments.transparent, &mut errors);
    if let Some(shape) = &shape {
        stability::check(shape, &input.attrs, &mut errors);
    }
    let target = Target::new(&input.ident, &input.generics, arguments.runtime);

    match (shape, errors.finish()) {
        (Some(shape), Ok(())) => target.implement(&shape),
        // With its traits the type causes no second error where it is used.
        (_, Err(errors)) => {
            let stub = target.stub();
            let errors = errors.into_compile_error();
            quote!(#errors #stub)
        }
        (None, Ok(())) => target.stub(),
    }
}
