//! What the attribute makes of its input: whole expansions, messages, and that
//! no input makes it panic.

#![allow(
    clippy::needless_raw_string_hashes,
    reason = "expect-test chooses their number"
)]

mod derives;
mod fallbacks;
mod listed;
mod messages;
mod names;
mod panics;
mod shapes;
mod spans;

use expect_test::Expect;
use proc_macro2::{TokenStream, TokenTree};

use crate::listing::Listing;

/// `#[idempotent(args)] item`, of a runtime without the list of handlers.
fn expand(args: TokenStream, item: &TokenStream) -> TokenStream {
    crate::expand::expand(args, item, Listing::Off)
}

/// Compares the expansion of `#[idempotent(args)] item`, formatted.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "`quote!` makes values")]
fn check(args: TokenStream, item: TokenStream, expected: &Expect) {
    compare(&expand(args, &item), expected);
}

#[track_caller]
fn compare(expansion: &TokenStream, expected: &Expect) {
    let text = match syn::parse2(expansion.clone()) {
        Ok(file) => prettyplease::unparse(&file),
        Err(_) => format!("{expansion}\n"), // a body that is half typed
    };
    expected.assert_eq(&text);
}

/// The texts of all errors in an expansion.
fn errors(expansion: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_error = false;
    for token in expansion {
        match token {
            TokenTree::Group(group) if is_error => {
                let text: syn::LitStr = syn::parse2(group.stream()).unwrap();
                found.push(text.value());
                is_error = false;
            }
            TokenTree::Group(group) => found.extend(errors(group.stream())),
            TokenTree::Ident(ident) => is_error = ident == "compile_error",
            _ => {}
        }
    }
    found
}
