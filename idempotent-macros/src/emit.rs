//! From a plan to tokens. Nothing here can fail.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{FnArg, LitStr, Pat, Type};

use crate::args::Guard;
use crate::handler::Handler;
use crate::key::{Assertion, BoundPath};
use crate::output::Output;
use crate::paths::{Runtime, mixed};

/// Everything that the arguments and the signature have agreed on.
pub(crate) struct Plan {
    pub(crate) key: Vec<BoundPath>,
    pub(crate) scope: Scope,
    pub(crate) tx: Ident,
    pub(crate) guard: Guard,
    pub(crate) bind: Option<Ident>,
    pub(crate) table: Option<LitStr>,
}

pub(crate) enum Scope {
    Written(LitStr),
    /// Follows the module's path.
    Default {
        suffix: String,
    },
}

/// The handler, framed: claim, run, prove.
pub(crate) fn handler(
    plan: &Plan,
    mut handler: Handler,
    output: &Output,
    runtime: &Runtime,
) -> TokenStream {
    let private = |name| runtime.private(name, Span::call_site());
    let [frame, description, key, claimed, result, outcome] =
        ["frame", "handler", "key", "claimed", "result", "outcome"].map(local);
    let (claim, transaction, finish) =
        (private("claim"), private("transaction"), private("finish"));
    let ty = output.result();
    let frame_of = runtime.private("frame", ty.span());
    let frame_of = quote_spanned!(ty.span()=> #frame_of::<#ty>());
    let described = describe(plan, runtime);
    let key_of = key_of(plan, &description, runtime);
    let tx = &plan.tx;
    let lint = underscore_lint(tx);
    let bind = plan.bind.as_ref().map(|bind| {
        let bound = runtime.private("bound", bind.span());
        quote!(let #bind = #bound(&#claimed);)
    });
    let body = body(&mut handler, output, runtime);

    frame_function(
        &handler,
        output,
        &quote! {
            let #frame = #frame_of;
            let #description = #described;
            let #key = #key_of;
            #lint
            let mut #claimed = match #claim(#frame, #tx, #description, #key).await {
                ::core::result::Result::Ok(#claimed) => #claimed,
                ::core::result::Result::Err(#outcome) => return #outcome,
            };
            let #result = {
                #bind
                let #tx = #transaction(&mut #claimed);
                #body
            }.await;
            #finish(#frame, #claimed, #result).await
        },
    )
}

/// The handler without a frame, beside an error. Its names are used, the one of
/// `bind` is there: neither is to be the next thing reported.
pub(crate) fn fallback(
    bind: Option<&Ident>,
    mut handler: Handler,
    output: &Output,
    runtime: &Runtime,
) -> TokenStream {
    let unclaimed = runtime.private("unclaimed", Span::call_site());
    let names: Vec<Ident> = handler.names().cloned().collect();
    let bind = bind.map(|bind| {
        let (root, hint) = (runtime.root(), runtime.private("hint", bind.span()));
        quote!(let #bind = #hint::<#root::Claim>();)
    });
    let body = body(&mut handler, output, runtime);
    frame_function(
        &handler,
        output,
        &quote! {
            let _ = (#(&#names,)*);
            #unclaimed({ #bind #body }.await)
        },
    )
}

fn frame_function(handler: &Handler, output: &Output, statements: &TokenStream) -> TokenStream {
    let Handler {
        attrs, vis, sig, ..
    } = handler;
    let statements = match output {
        Output::Async { .. } => statements.clone(),
        Output::Boxed { .. } => quote!(::std::boxed::Box::pin(async move { #statements })),
    };
    let block = braced(handler, statements);
    quote!(#(#attrs)* #vis #sig #block)
}

/// A block with the braces of the user's: they tell lints whose function it is.
fn braced(handler: &Handler, statements: TokenStream) -> Group {
    let mut block = Group::new(Delimiter::Brace, statements);
    block.set_span(handler.body.span());
    block
}

/// A static that holds what is known of the handler. The compiler evaluates it,
/// and with it the checks of scope and table.
fn describe(plan: &Plan, runtime: &Runtime) -> TokenStream {
    let private = |name| runtime.private(name, Span::call_site());
    let (handler, guard) = (private("Handler"), private("Guard"));
    let guard = match plan.guard {
        Guard::Verify => quote!(#guard::Verify),
        Guard::Savepoint => quote!(#guard::Savepoint),
    };
    let table = plan
        .table
        .as_ref()
        .map_or_else(|| quote!("processed_messages"), |table| quote!(#table));
    let value = match &plan.scope {
        Scope::Written(scope) => quote!(#handler::new(#scope, #guard, #table)),
        Scope::Default { suffix } => quote! {
            #handler::with_default_scope(
                ::core::concat!(::core::module_path!(), #suffix),
                ::core::concat!(::core::file!(), ":", ::core::line!(), ":", ::core::column!()),
                #guard,
                #table,
            )
        },
    };
    quote!({ static HANDLER: #handler = #value; &HANDLER })
}

/// A block of its own, so that every temporary is dropped before the first
/// await.
fn key_of(plan: &Plan, description: &Ident, runtime: &Runtime) -> TokenStream {
    let [new, finish] =
        ["new_key", "finish_key"].map(|name| runtime.private(name, Span::call_site()));
    let key = local("key");
    let parts = plan.key.iter().map(|part| {
        let write = runtime.private(part.writer(), part.span);
        let BoundPath {
            tokens, text, span, ..
        } = part;
        let value = match part.assertion {
            Assertion::None => quote_spanned!(*span=> &#tokens),
            Assertion::Stable => quote_spanned!(*span=> &(#tokens)), // `a + b`, `a as b`
        };
        quote!(#write(&mut #key, #text, #value);)
    });
    quote! {{
        let mut #key = #new(#description);
        #(#parts)*
        #finish(#key)
    }}
}

/// The user's body, once, with its own brace. The branch that never runs tells
/// the compiler the body's type from the first line on, so that type errors in
/// it read as in a plain `async fn`.
fn body(handler: &mut Handler, output: &Output, runtime: &Runtime) -> TokenStream {
    match output {
        Output::Async { result } => {
            let (hint, hint_of) = (local("hint"), runtime.private("hint", Span::call_site()));
            let returned = hint_at(result, &hint);
            let rebound = rebind(handler);
            let statements = handler.body.stream();
            let block = braced(
                handler,
                quote!(if false { return #returned; } #rebound #statements),
            );
            quote!(let #hint = #hint_of::<#result>; async move #block)
        }
        Output::Boxed { body, .. } => {
            let (block, future) = (&handler.body, local("future"));
            quote!(let #future: #body = #block; #future)
        }
    }
}

/// `hint()`, which stands where the return type stands: there rustc looks for it.
fn hint_at(result: &Type, hint: &Ident) -> TokenStream {
    let place = result.to_token_stream().into_iter();
    let (start, end) = (result.span(), place.last().map(|token| token.span()));
    let mut call = Group::new(Delimiter::Parenthesis, TokenStream::new());
    call.set_span(mixed(end.unwrap_or(start)));
    let mut hint = hint.clone();
    hint.set_span(mixed(start));
    quote!(#hint #call)
}

/// `mut name: T` becomes `name: T`, and `let mut name = name;` in the body: the
/// frame does not change it, the body may.
fn rebind(handler: &mut Handler) -> TokenStream {
    let mut rebound = TokenStream::new();
    for input in &mut handler.sig.inputs {
        if let FnArg::Typed(typed) = input
            && let Pat::Ident(pat) = &mut *typed.pat
            && pat.by_ref.is_none()
            && let Some(mutability) = pat.mutability.take()
        {
            let name = &pat.ident;
            rebound.extend(quote!(let #mutability #name = #name;));
        }
    }
    rebound
}

/// clippy takes a use of ours for a use of the user's.
fn underscore_lint(tx: &Ident) -> Option<TokenStream> {
    tx.to_string()
        .starts_with('_')
        .then(|| quote!(#[allow(clippy::used_underscore_binding)]))
}

fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}
