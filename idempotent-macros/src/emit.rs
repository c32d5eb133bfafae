//! From a plan to tokens. Nothing here can fail.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use crate::args::{Answer, Busy, Each, Guard};
use crate::handler::Handler;
use crate::key::{self, Assertion, BoundPath};
use crate::listing;
use crate::output::Output;
use crate::paths::{Runtime, mixed};
use crate::plan::{Plan, Scope};
use crate::rebind::{rebind, take_mutability};

/// The handler, framed: claim, run, prove.
pub(crate) fn handler(
    plan: &Plan,
    mut handler: Handler,
    output: &Output,
    runtime: &Runtime,
) -> TokenStream {
    let [frame, description, key, result] = ["frame", "handler", "key", "result"].map(local);
    let tx = &plan.tx;
    // Whatever asks for a database that holds keys does so in one place, so that
    // it is refused once.
    let place = mixed(handler.database_span(tx));
    let [claimed, lent, outcome] =
        ["claimed", "lent", "outcome"].map(|name| Ident::new(name, place));
    let [claim, transaction, finish] = match (&plan.each, plan.busy) {
        (Some(_), _) => ["claim_batch", "transaction_of_batch", "finish_batch"],
        (None, Busy::Wait) => ["claim", "transaction", "finish"],
        (None, Busy::Fail) => ["claim_or_fail", "transaction", "finish"],
    };
    let [claim, transaction_of, transaction, finish] =
        [claim, "transaction_of", transaction, finish].map(|name| runtime.private(name, place));
    // A batch goes in whole, and comes out without what is no news.
    let list = plan.each.as_ref().map(|each| &each.list).into_iter();
    let list: Vec<&Ident> = list.collect();
    let claim = quote_spanned!(place=> #claim(#frame, #lent, #description, #key #(, #list)*).await);
    let claimed_as = match &*list {
        [] => quote!(mut #claimed),
        list => quote!((mut #claimed #(, #list)*)),
    };
    let mut parameter = tx.clone();
    parameter.set_span(place.resolved_at(tx.span()));
    let parameter = quote_spanned!(place=> #transaction_of(#parameter));
    let transaction = quote_spanned!(place=> #transaction(&mut #claimed));
    let finish = quote_spanned!(place=> #finish(#frame, #claimed, #result).await);
    let ty = output.result();
    let frame_name = match plan.answer {
        Answer::Outcome => "frame",
        Answer::Replay => "replay_frame",
        Answer::Batch => "batch_frame",
    };
    let frame_of = runtime.private(frame_name, ty.span());
    let frame_of = quote_spanned!(ty.span()=> #frame_of::<#ty>());
    let described = describe(plan, runtime);
    let key_of = key_of(plan, &description, runtime);
    let mutability = take_mutability(&mut handler, tx);
    let allowance = underscore_allowance(tx);
    let bind = plan.bind.as_ref().map(|bind| {
        let bound = runtime.private("bound", place);
        quote_spanned!(place=> let #bind = #bound(&#claimed);)
    });
    let parts: Vec<&BoundPath> = plan.parts().collect();
    let body = body(&mut handler, &parts, output, runtime);

    frame_function(
        &handler,
        output,
        &quote! {
            let #frame = #frame_of;
            let #description = #described;
            let #key = #key_of;
            #allowance
            let #lent = #parameter;
            let #claimed_as = match #claim {
                ::core::result::Result::Ok(#claimed) => #claimed,
                ::core::result::Result::Err(#outcome) => return #outcome,
            };
            let #result = {
                #bind
                let #mutability #tx = #transaction;
                #body
            }.await;
            #finish
        },
    )
}

/// The handler without a frame, beside an error. Its names are used, the one of
/// `bind` is there: neither is to be the next thing reported.
pub(crate) fn fallback(
    answer: Answer,
    bind: Option<&Ident>,
    mut handler: Handler,
    output: &Output,
    runtime: &Runtime,
) -> TokenStream {
    let unclaimed = match answer {
        Answer::Outcome => "unclaimed",
        Answer::Replay => "unclaimed_replay",
        Answer::Batch => "unclaimed_batch",
    };
    let unclaimed = runtime.private(unclaimed, Span::call_site());
    let names: Vec<Ident> = handler.names().cloned().collect();
    let bind = bind.map(|bind| {
        let (root, hint) = (
            runtime.root(Span::call_site()),
            runtime.private("hint", Span::call_site()),
        );
        quote!(let #bind = #hint::<#root::Claim>();)
    });
    let body = body(&mut handler, &[], output, runtime);
    let result = match output {
        Output::Async { .. } | Output::Boxed { .. } => quote!(#unclaimed({ #bind #body }.await)),
        Output::Bare { value } => {
            let hint = runtime.private("hint", Span::call_site());
            quote!(let _: #value = { #bind #body }.await; #hint())
        }
    };
    frame_function(
        &handler,
        output,
        &quote! {
            let _ = (#(&#names,)*);
            #result
        },
    )
}

fn frame_function(handler: &Handler, output: &Output, statements: &TokenStream) -> TokenStream {
    let Handler {
        attrs, vis, sig, ..
    } = handler;
    let statements = match output {
        Output::Async { .. } | Output::Bare { .. } => statements.clone(),
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
/// and with it the check of a default scope.
fn describe(plan: &Plan, runtime: &Runtime) -> TokenStream {
    let private = |name| runtime.private(name, Span::call_site());
    let [handler, options, located] = ["Handler", "Options", "located"].map(private);
    let options = options_of(plan, &options, runtime);
    let value = match &plan.scope {
        Scope::Written(scope) => quote!(#handler::new(#scope, #options)),
        Scope::Default { suffix } => quote! {
            #handler::with_default_scope(::core::concat!(::core::module_path!(), #suffix), #options)
        },
    };
    let reference = match &plan.scope {
        Scope::Written(_) => quote!(&HANDLER),
        Scope::Default { .. } => quote!(#located(&HANDLER, &|| {})),
    };
    let entry = listing::entry(plan, runtime);
    quote!({ static HANDLER: #handler = #value; #entry #reference })
}

/// What is said, and the rest by default.
fn options_of(plan: &Plan, options: &TokenStream, runtime: &Runtime) -> TokenStream {
    let guard = (plan.guard == Guard::Savepoint).then(|| {
        let guard = runtime.private("Guard", Span::call_site());
        quote!(guard: #guard::Savepoint,)
    });
    let table = plan.table.as_ref();
    let table = table.map(|table| quote!(table: ::core::option::Option::Some(#table),));
    let retain = plan.retain;
    let retain = retain.map(|retain| quote!(retain: ::core::option::Option::Some(#retain),));
    let busy = (plan.busy == Busy::Fail).then(|| {
        let busy = runtime.private("Busy", Span::call_site());
        quote!(busy: #busy::Fail,)
    });
    let said = [guard, table, retain, busy];
    if said.iter().all(Option::is_none) {
        return quote!(#options::DEFAULT);
    }
    // clippy tells the user of a rest that is empty.
    let is_part = said.iter().any(Option::is_none);
    let rest = is_part.then(|| quote!(..#options::DEFAULT));
    quote!(#options { #(#said)* #rest })
}

/// A block of its own, so that every temporary is dropped before the first
/// await. What is called stands where the word `key` stands, and only the part
/// in its place: rustc then underlines the part, and editors find it there.
fn key_of(plan: &Plan, description: &Ident, runtime: &Runtime) -> TokenStream {
    let [new, finish, new_fingerprint, finish_fingerprint] = [
        "new_key",
        "finish_key",
        "new_fingerprint",
        "finish_fingerprint",
    ]
    .map(|name| runtime.private(name, Span::call_site()));
    let key = local("key");
    let parts = parts(&plan.key, plan.key_name, runtime);
    let key_of = quote! {{
        let mut #key = #new(#description);
        #parts
        #finish(#key)
    }};
    if let Some(each) = &plan.each {
        return keys_of(each, &key_of, runtime);
    }
    let key_of = former_of(plan, key_of, runtime);
    let Some(fingerprint) = &plan.fingerprint else {
        return key_of;
    };
    let texts: Vec<_> = fingerprint
        .parts
        .iter()
        .map(|part| part.text.as_str())
        .collect();
    let list = texts.join(",");
    let parts = self::parts(&fingerprint.parts, fingerprint.name, runtime);
    quote! {
        #finish_fingerprint(#key_of, #list, {
            let mut #key = #new_fingerprint();
            #parts
            #key
        })
    }
}

/// The key, with the names that it had before.
fn former_of(plan: &Plan, key_of: TokenStream, runtime: &Runtime) -> TokenStream {
    let [formerly, new] =
        ["formerly", "new_fingerprint"].map(|name| runtime.private(name, Span::call_site()));
    let key = local("key");
    let none = || quote!(::core::option::Option::None);
    plan.former.iter().fold(key_of, |key_of, former| {
        let scope = former.scope.as_ref();
        let scope = scope.map_or_else(none, |scope| quote!(::core::option::Option::Some(#scope)));
        let parts = former.parts.as_ref().map_or_else(none, |parts| {
            let parts = self::parts(parts, former.name, runtime);
            quote!(::core::option::Option::Some({ let mut #key = #new(); #parts #key }))
        });
        quote!(#formerly(#key_of, #scope, #parts))
    })
}

/// The keys of a batch, one for each message.
fn keys_of(each: &Each, key_of: &TokenStream, runtime: &Runtime) -> TokenStream {
    let [new, push] = ["new_keys", "push_key"].map(|name| runtime.private(name, Span::call_site()));
    let keys = local("keys");
    let Each { element, list } = each;
    quote! {{
        let mut #keys = #new();
        for #element in &#list {
            #push(&mut #keys, #key_of);
        }
        #keys
    }}
}

/// Writes the parts, one after the other.
fn parts(parts: &[BoundPath], name: Span, runtime: &Runtime) -> TokenStream {
    let at = runtime.private("at", Span::call_site());
    let key = local("key");
    let parts = parts.iter().map(|part| {
        let writer = key::writer(part.presence, part.assertion);
        let write = runtime.private(writer, name);
        let BoundPath {
            tokens, text, span, ..
        } = part;
        let value = match part.assertion {
            Assertion::None => quote_spanned!(*span=> &#tokens),
            // `a + b`, `a as b`; from its first token to its last
            Assertion::Stable => {
                let mut value = Group::new(Delimiter::Parenthesis, tokens.clone());
                let last = tokens.clone().into_iter().last();
                value.set_span(last.map_or(*span, |last| last.span()));
                quote_spanned!(*span=> &#value)
            }
        };
        quote!(#write(#at(&mut #key, #text), #value);)
    });
    parts.collect()
}

/// The user's body, once, with its own brace. The branch that never runs tells
/// the compiler the body's type from the first line on, so that type errors in
/// it read as in a plain `async fn`.
fn body(
    handler: &mut Handler,
    key: &[&BoundPath],
    output: &Output,
    runtime: &Runtime,
) -> TokenStream {
    match output {
        Output::Async { result } | Output::Bare { value: result } => {
            let (hint, hint_of) = (local("hint"), runtime.private("hint", Span::call_site()));
            let returned = hint_at(result, &hint);
            let rebound = rebind(handler, key);
            let statements = handler.body.stream();
            let block = braced(
                handler,
                quote!(if false { return #returned; } #rebound #statements),
            );
            // Of the user's place, too: rustc then names the variables in it. Of the
            // brace alone: an editor then shows what is under the cursor, not `async`.
            let future = quote_spanned!(handler.open=> async move #block);
            quote!(let #hint = #hint_of::<#result>; #future)
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

/// clippy takes a use of ours for a use of the user's.
fn underscore_allowance(tx: &Ident) -> Option<TokenStream> {
    tx.to_string()
        .starts_with('_')
        .then(|| quote!(#[allow(clippy::used_underscore_binding)]))
}

fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}
