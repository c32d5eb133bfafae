//! An entry in the list of handlers: the arguments as they are written.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::LitStr;

use crate::args::Answer;
use crate::key::BoundPath;
use crate::paths::Runtime;
use crate::plan::Plan;

/// Whether the runtime keeps a list of handlers. It forwards its feature: an
/// expansion that nobody reads would be compiled all the same.
#[derive(Clone, Copy)]
pub(crate) enum Listing {
    Off,
    On,
}

impl Listing {
    pub(crate) const OF_BUILD: Self = if cfg!(feature = "handlers") {
        Self::On
    } else {
        Self::Off
    };
}

/// Enters the static `HANDLER`, beside it.
pub(crate) fn entry(plan: &Plan, runtime: &Runtime) -> Option<TokenStream> {
    if matches!(runtime.listing, Listing::Off) {
        return None;
    }
    let register = runtime.private("register", Span::call_site());
    let key = written(&plan.key);
    let fingerprint = plan.fingerprint.as_ref().map(|fingerprint| {
        let parts = written(&fingerprint.parts);
        quote!(, fingerprint = #parts)
    });
    let each = plan.each.as_ref().map(|each| {
        let each = format!("{} in {}", each.element, each.list);
        quote!(, each = #each)
    });
    let was = (!plan.former.is_empty()).then(|| {
        let names = plan.former.iter().map(|former| {
            let scope = former.scope.as_ref().map(LitStr::value).unwrap_or_default();
            let key = former.parts.as_deref().map(written).unwrap_or_default();
            quote!((#scope, #key))
        });
        quote!(, was = &[#(#names),*])
    });
    let replay = (plan.answer == Answer::Replay).then(|| quote!(, replay = true));
    let redelivery = plan
        .redelivery
        .map(|redelivery| quote!(, redelivery = #redelivery));
    Some(quote!(#register! { HANDLER, key = #key #fingerprint #each #was #replay #redelivery }))
}

fn written(parts: &[BoundPath]) -> String {
    let parts: Vec<&str> = parts.iter().map(|part| part.written.as_str()).collect();
    parts.join(", ")
}
