//! The language of key parts.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Expr, ExprCall, Ident, LitStr, Member, UnOp};

use super::spell::spelled;
use super::{Assertion, Found, KeyPath, Place, Presence, Tail, asserted, path, tail};
use crate::diagnostics;
use crate::mistakes::{Errors, near};
use crate::paths::mixed;
use crate::pieces::{Piece, split};

/// `key = "…"`. All spans are the literal's: its text must name the segment.
pub(crate) fn parse_literal(literal: &LitStr, errors: &mut Errors) -> Vec<KeyPath> {
    let text = literal.value();
    if text.len() > MOST_TEXT {
        errors.push(diagnostics::long_part(literal.span()));
        return Vec::new();
    }
    let Ok(tokens) = text.parse() else {
        errors.push(diagnostics::not_a_path(literal, &text));
        return Vec::new();
    };
    let mut paths = parse_tokens(located(tokens, literal.span()), literal.span(), errors);
    let mixed = mixed(literal.span());
    for path in &mut paths {
        path.tokens = located(std::mem::take(&mut path.tokens), mixed);
        path.span = mixed;
    }
    paths
}

/// `key(…)`, or the content of the literal. `end` is where a missing part is
/// reported.
pub(crate) fn parse_tokens(tokens: TokenStream, end: Span, errors: &mut Errors) -> Vec<KeyPath> {
    let mut paths: Vec<KeyPath> = Vec::new();
    for Piece { tokens, comma } in split(tokens) {
        if tokens.is_empty() {
            errors.push(diagnostics::empty_part(comma.unwrap_or(end)));
            continue;
        }
        match parse_part(&tokens.into_iter().collect()) {
            Ok(path) if paths.iter().any(|other| other.text == path.text) => {
                errors.push(diagnostics::repeated_part(path.span, &path.text));
            }
            Ok(path) => paths.push(path),
            Err(error) => errors.push(error),
        }
    }
    paths
}

fn parse_part(tokens: &TokenStream) -> syn::Result<KeyPath> {
    if let Some(span) = token_after(MOST_TOKENS, tokens) {
        return Err(diagnostics::long_part(span));
    }
    let expr: Expr = syn::parse2(tokens.clone()).map_err(|_| unparsed(tokens))?;
    let (mut presence, mut assertion) = (Presence::Always, Assertion::None);
    let mut inner = &expr;
    while let Some((wrapper, argument)) = wrapper(inner)? {
        match (wrapper, presence, assertion) {
            (Wrapper::Stable, _, Assertion::None) => assertion = Assertion::Stable,
            (Wrapper::Required, Presence::Always, _) => presence = Presence::Required,
            (Wrapper::Nullable, Presence::Always, _) => presence = Presence::Nullable,
            _ => return Err(diagnostics::wrapped_twice(inner.span())),
        }
        inner = argument;
    }
    let named = &*spelled(inner);
    let text = named.trim_start_matches(['&', '*']);
    let (Found { roots, is_plain }, tails) = match assertion {
        Assertion::Stable => (asserted::search(inner)?, Vec::new()),
        Assertion::None => (path::walk(referent(inner))?, Tail::all(inner)),
    };
    Ok(KeyPath {
        tokens: inner.to_token_stream(),
        roots,
        text: text.to_owned(),
        written: spelled(tokens),
        value: spelled(tail::value(inner)),
        presence,
        assertion,
        tails,
        is_plain,
        span: match assertion {
            Assertion::Stable => inner.span(),
            Assertion::None => last_span(inner),
        },
    })
}

/// What is no expression; `msg.type` for one.
fn unparsed(tokens: &TokenStream) -> syn::Error {
    let mut place = Place::default();
    for token in tokens.clone() {
        if let TokenTree::Ident(name) = &token
            && !place.may_be_variable()
            && syn::parse2::<Ident>(token.to_token_stream()).is_err()
        {
            return diagnostics::keyword_in_path(name);
        }
        place.pass(&token);
    }
    diagnostics::not_a_path(tokens, &spelled(tokens))
}

/// `msg.id` of `&msg.id` and `*msg.id`, which have the same text.
fn referent(expr: &Expr) -> &Expr {
    match expr {
        Expr::Group(group) => referent(&group.expr),
        Expr::Reference(reference) if reference.mutability.is_none() => referent(&reference.expr),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => referent(&unary.expr),
        expr => expr,
    }
}

const WRAPPERS: [&str; 3] = ["stable", "required", "nullable"];

enum Wrapper {
    Stable,
    Required,
    Nullable,
}

fn wrapper(expr: &Expr) -> syn::Result<Option<(Wrapper, &Expr)>> {
    if let Expr::Group(group) = expr {
        return wrapper(&group.expr); // a macro's `$part:expr`
    }
    let Expr::Call(ExprCall { func, args, .. }) = expr else {
        return Ok(None);
    };
    let Expr::Path(path) = &**func else {
        return Ok(None);
    };
    let Some(name) = path.path.get_ident() else {
        return Ok(None);
    };
    let wrapper = match name.to_string().as_str() {
        "stable" => Wrapper::Stable,
        "required" => Wrapper::Required,
        "nullable" => Wrapper::Nullable,
        text => {
            return match near(text, WRAPPERS.into_iter()) {
                Some(known) => Err(diagnostics::unknown_wrapper(name, known)),
                None => Ok(None),
            };
        }
    };
    match args.first() {
        Some(argument) if args.len() == 1 => Ok(Some((wrapper, argument))),
        _ => Err(diagnostics::wrapper_arity(name)),
    }
}

/// Where there are more tokens than that, brackets and what is in them counted.
fn token_after(most: usize, tokens: &TokenStream) -> Option<Span> {
    let mut rest: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut count = rest.len();
    while let Some(token) = rest.pop() {
        if count > most {
            return Some(token.span());
        }
        if let TokenTree::Group(group) = token {
            let inner = rest.len();
            rest.extend(group.stream());
            count += rest.len() - inner;
        }
    }
    None
}

/// What nests deeper than a parser's stack allows is longer than that.
const MOST_TOKENS: usize = 128;

/// Of a whole key in a string, in bytes.
const MOST_TEXT: usize = 4096;

/// Where a type error of the part belongs: the last segment.
fn last_span(expr: &Expr) -> Span {
    match expr {
        Expr::Field(field) => match &field.member {
            Member::Named(name) => name.span(),
            Member::Unnamed(index) => index.span,
        },
        Expr::MethodCall(call) => call.method.span(),
        Expr::Reference(reference) => last_span(&reference.expr),
        Expr::Unary(unary) => last_span(&unary.expr),
        Expr::Paren(paren) => last_span(&paren.expr),
        Expr::Group(group) => last_span(&group.expr),
        other => other.span(),
    }
}

fn located(tokens: TokenStream, span: Span) -> TokenStream {
    tokens
        .into_iter()
        .map(|token| match token {
            TokenTree::Group(group) => {
                let mut located =
                    proc_macro2::Group::new(group.delimiter(), located(group.stream(), span));
                located.set_span(span);
                located.into()
            }
            mut token => {
                token.set_span(span);
                token
            }
        })
        .collect()
}
