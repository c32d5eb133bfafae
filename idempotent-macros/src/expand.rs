//! Arguments and item in, item out.
//!
//! parse → bind → emit; where something is wrong, the function survives with
//! the outward signature that success would have.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::args::{self, Args};
use crate::diagnostics::{self, Errors};
use crate::emit::{self, Plan, Scope};
use crate::handler::Handler;
use crate::key::{self, BoundPath};
use crate::output;
use crate::paths::Runtime;

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
            return verbatim(item, errors);
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

/// Three stages: what is written, what it names, what that makes of messages.
/// The mistakes of one would make false ones in the next.
fn plan(args: Args, handler: &Handler, errors: Errors) -> syn::Result<Plan> {
    errors.finish()?;
    let (tx, key) = names(&args, handler)?;
    let scope = meaning(&args, handler, &tx)?;
    Ok(Plan {
        key,
        scope,
        tx,
        guard: args.guard,
        bind: args.bind,
        table: args.table,
    })
}

/// Names that the arguments mention, each against the signature.
fn names(args: &Args, handler: &Handler) -> syn::Result<(Ident, Vec<BoundPath>)> {
    let mut errors = Errors::default();
    let tx = handler.transaction(args.tx.as_ref());
    for name in &args.skip {
        if handler.name(name).is_none() {
            errors.push(diagnostics::unknown_parameter(
                name,
                &name.to_string(),
                handler,
            ));
        }
    }
    if let Some(bind) = &args.bind
        && handler.name(bind).is_some()
    {
        errors.push(diagnostics::bound_name_taken(bind));
    }
    let key = args
        .key
        .iter()
        .filter_map(|path| key::bind(path, handler, &mut errors))
        .collect();
    match tx {
        Ok(tx) => errors.finish().map(|()| (tx, key)),
        Err(error) => Err(errors.and(error)),
    }
}

/// What the key and its scope tell apart: these messages, and no other handler's.
fn meaning(args: &Args, handler: &Handler, tx: &Ident) -> syn::Result<Scope> {
    let mut errors = Errors::default();
    check_grain(args, handler, tx, &mut errors);
    let scope = scope(args, handler, &mut errors);
    errors.finish().map(|()| scope)
}

/// The scope as written, or the function's path and key.
fn scope(args: &Args, handler: &Handler, errors: &mut Errors) -> Scope {
    if let Some(scope) = &args.scope {
        return Scope::Written(scope.clone());
    }
    let name = syn::ext::IdentExt::unraw(&handler.sig.ident).to_string();
    let paths = &args.key;
    let parts: Vec<String> = paths
        .iter()
        .map(|path| path.text.replace("r#", ""))
        .collect();
    let suffix = format!("::{name}({})", parts.join(","));
    let why = if handler.receiver().is_some() {
        Some("a method's path does not name its type")
    } else if handler.is_generic() {
        Some("a generic handler stands for many")
    } else if !paths.iter().all(|path| path.is_plain) {
        Some("the key holds a call or an index")
    } else if !suffix.is_ascii() {
        Some("the handler's name or key is not ASCII")
    } else if suffix.len() > 120 {
        Some("the handler's name and key are too long")
    } else {
        None
    };
    if let Some(why) = why {
        errors.push(diagnostics::scope_required(why));
    }
    Scope::Default { suffix }
}

/// Every parameter tells messages apart, or is said not to.
fn check_grain(args: &Args, handler: &Handler, tx: &Ident, errors: &mut Errors) {
    let Args { key, skip, .. } = args;
    let is_in_key = |name: &Ident| key.iter().any(|path| path.roots.contains(name));
    for root in key.iter().flat_map(|path| &path.roots) {
        if root == tx {
            errors.push(diagnostics::transaction_in_key(root));
        }
    }
    for name in skip {
        if name == tx {
            errors.push(diagnostics::skipped_transaction(name));
        } else if is_in_key(name) {
            errors.push(diagnostics::in_key_and_skipped(name));
        }
    }
    for param in &handler.params {
        let is_covered = param.is_ignored()
            || param
                .names
                .iter()
                .any(|name| name == tx || is_in_key(name) || skip.contains(name));
        if let (false, Some(name)) = (is_covered, param.names.first()) {
            errors.push(diagnostics::too_coarse(param.span, name));
        }
    }
}
