//! The handler's return type: what the body returns, and what the caller sees.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::{GenericArgument, PathArguments, ReturnType, Signature, Type, TypeParamBound};

use crate::args::Answer;
use crate::diagnostics;
use crate::handler::{last_segment, mentions, ungrouped};
use crate::paths::Runtime;

/// How the handler's future comes about.
pub(crate) enum Output {
    /// `async fn … -> R`
    Async { result: Box<Type> },
    /// `fn … -> Pin<Box<dyn Future<Output = R> + …>>`, as `#[async_trait]` makes it.
    Boxed {
        result: Box<Type>,
        /// The body's own type, with its lifetimes left to inference.
        body: TokenStream,
    },
    /// `async fn … -> T`, which is a mistake.
    Bare { value: Box<Type> },
}

impl Output {
    pub(crate) const fn result(&self) -> &Type {
        match self {
            Self::Async { result } | Self::Boxed { result, .. } => result,
            Self::Bare { value } => value,
        }
    }
}

impl Answer {
    /// The type around the handler's value.
    fn name(self) -> Ident {
        let name = match self {
            Self::Outcome => "Outcome",
            Self::Replay => "Replay",
            Self::Batch => "Batch",
        };
        Ident::new(name, Span::call_site())
    }
}

/// Reads the return type, and rewrites it in the signature to the one that the
/// caller sees.
pub(crate) fn rewrite(
    sig: &mut Signature,
    answer: Answer,
    runtime: &Runtime,
) -> syn::Result<Output> {
    if sig.asyncness.is_none() {
        return rewrite_boxed(sig, answer, runtime);
    }
    let ReturnType::Type(_, ty) = &mut sig.output else {
        return Err(diagnostics::no_result(sig));
    };
    if mentions(&ty, "impl") {
        return Err(diagnostics::impl_in_result(ty));
    }
    if !may_be_result(ty) {
        return Err(diagnostics::no_result(sig));
    }
    check_value(ty)?;
    let result = ty.clone();
    **ty = Type::Verbatim(outward(&result, answer, runtime));
    Ok(Output::Async { result })
}

/// Makes of a refused signature the one that its author meant, if it tells: for
/// callers, beside the error.
pub(crate) fn mend(sig: &mut Signature, answer: Answer, runtime: &Runtime) -> Option<Output> {
    if let ReturnType::Type(_, ty) = &sig.output
        && is_future(ty)
    {
        return None;
    }
    let result = match &mut sig.output {
        ReturnType::Type(_, ty) if may_be_result(ty) => {
            let mut result = ty.clone();
            if let Type::Path(path) = &mut *result
                && let Some(value) = value_of_result(path)
                && matches!(value, Type::ImplTrait(_))
            {
                *value = Type::Infer(syn::parse_quote!(_)); // of the body, to which it is not hidden
            }
            if mentions(&result, "impl") {
                return None;
            }
            **ty = Type::Verbatim(outward(ty, answer, runtime));
            Output::Async { result }
        }
        output => {
            let value = match output {
                ReturnType::Default => Box::new(syn::parse_quote!(())),
                ReturnType::Type(_, ty) => ty.clone(),
            };
            let (root, name) = (runtime.root(Span::call_site()), answer.name());
            *output = syn::parse_quote! {
                -> ::core::result::Result<#root::#name<#value>, #root::Error>
            };
            Output::Bare { value }
        }
    };
    sig.asyncness = Some(syn::Token![async](sig.fn_token.span));
    sig.constness = None;
    Some(result)
}

/// What a function returns that is not `async` itself.
fn is_future(ty: &Type) -> bool {
    let is_boxed = last_segment(ty)
        .is_some_and(|name| name == "Pin" || name == "Box" || name.to_string().ends_with("Future"));
    is_boxed || matches!(ungrouped(ty), Type::ImplTrait(_))
}

/// Writes the outward return type of a function without a body.
pub(crate) fn announce(sig: &mut Signature, answer: Answer, runtime: &Runtime) {
    if let ReturnType::Type(_, ty) = &mut sig.output
        && !mentions(&ty, "Outcome")
        && !mentions(&ty, "Replay")
        && !is_future(ty)
        && may_be_result(ty)
    {
        **ty = Type::Verbatim(outward(ty, answer, runtime));
    }
}

/// Refuses what the attribute is about to write itself.
fn check_value(result: &Type) -> syn::Result<()> {
    let Type::Path(path) = ungrouped(result) else {
        return Ok(());
    };
    match value_of_result(&mut path.clone()) {
        Some(value)
            if last_segment(value).is_some_and(|name| name == "Outcome" || name == "Replay") =>
        {
            Err(diagnostics::outward_type(value))
        }
        _ => Ok(()),
    }
}

/// Says whether a type may be an alias of `Result`: rustc knows of those that
/// may, and needs three errors to say it.
fn may_be_result(ty: &Type) -> bool {
    let Type::Path(path) = ungrouped(ty) else {
        return matches!(ty, Type::Macro(_) | Type::Verbatim(_));
    };
    let name = path.path.segments.last().map(|last| last.ident.to_string());
    !matches!(
        name.as_deref(),
        Some("Option" | "Outcome" | "Replay" | "Box" | "String" | "Vec" | "bool")
    )
}

fn rewrite_boxed(sig: &mut Signature, answer: Answer, runtime: &Runtime) -> syn::Result<Output> {
    let (not_async, no_result) = (diagnostics::not_async(sig), diagnostics::no_result(sig));
    let ReturnType::Type(_, ty) = &mut sig.output else {
        return Err(not_async);
    };
    let mut body = ty.clone();
    let Some(bounds) = boxed_future(&mut body) else {
        return Err(not_async);
    };
    *bounds = std::mem::take(bounds)
        .into_iter()
        .filter(|bound| !matches!(bound, TypeParamBound::Lifetime(_)))
        .collect();
    bounds.push(syn::parse_quote!('_));

    let Some(output) =
        boxed_future(ty).and_then(|bounds| bounds.iter_mut().find_map(future_output))
    else {
        return Err(not_async);
    };
    if !may_be_result(output) {
        return Err(no_result);
    }
    check_value(output)?;
    let result = Box::new(output.clone());
    *output = Type::Verbatim(outward(&result, answer, runtime));
    Ok(Output::Boxed {
        result,
        body: body.into_token_stream(),
    })
}

/// `Result<T, …>` becomes `Result<Outcome<T>, …>`, say, in place, which reads well in
/// rustdoc. Any other alias goes through a projection.
fn outward(result: &Type, answer: Answer, runtime: &Runtime) -> TokenStream {
    let span = result.span();
    let mut name = answer.name();
    let root = runtime.root(span);
    if let Type::Path(path) = ungrouped(result) {
        let mut path = path.clone();
        if let Some(value) = value_of_result(&mut path) {
            let span = value.span();
            name.set_span(span);
            *value = Type::Verbatim(quote_spanned!(span=> #root::#name<#value>));
            return path.into_token_stream();
        }
    }
    name.set_span(span);
    quote_spanned!(span=> <#result as #root::__private::HandlerResult>::#name)
}

fn value_of_result(path: &mut syn::TypePath) -> Option<&mut Type> {
    let segment = path.path.segments.last_mut()?;
    if segment.ident != "Result" {
        return None;
    }
    let PathArguments::AngleBracketed(arguments) = &mut segment.arguments else {
        return None;
    };
    arguments
        .args
        .iter_mut()
        .find_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty),
            _ => None,
        })
}

type Bounds = syn::punctuated::Punctuated<TypeParamBound, syn::Token![+]>;

/// The bounds in `Pin<Box<dyn …>>`.
fn boxed_future(ty: &mut Type) -> Option<&mut Bounds> {
    match ty {
        Type::TraitObject(object) => Some(&mut object.bounds),
        Type::Path(path) => {
            let segment = path.path.segments.last_mut()?;
            if segment.ident != "Pin" && segment.ident != "Box" {
                return None;
            }
            let PathArguments::AngleBracketed(arguments) = &mut segment.arguments else {
                return None;
            };
            match arguments.args.first_mut()? {
                GenericArgument::Type(ty) => boxed_future(ty),
                _ => None,
            }
        }
        _ => None,
    }
}

/// `R` in `Future<Output = R>`.
fn future_output(bound: &mut TypeParamBound) -> Option<&mut Type> {
    let TypeParamBound::Trait(bound) = bound else {
        return None;
    };
    let segment = bound.path.segments.last_mut()?;
    let PathArguments::AngleBracketed(arguments) = &mut segment.arguments else {
        return None;
    };
    arguments
        .args
        .iter_mut()
        .find_map(|argument| match argument {
            GenericArgument::AssocType(output) if output.ident == "Output" => Some(&mut output.ty),
            _ => None,
        })
}
