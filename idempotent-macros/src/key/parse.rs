//! The language of key parts.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Expr, ExprCall, Ident, LitStr, Member};

use super::{Assertion, KeyPath, Place, Presence};
use crate::args::{Piece, split};
use crate::diagnostics::{self, Errors};
use crate::paths::mixed;

/// Calls whose value is another one every time, whatever they are called on.
const FRESH: [&str; 14] = [
    "elapsed",
    "gen_range",
    "nanoid",
    "new_v1",
    "new_v4",
    "new_v6",
    "new_v7",
    "now",
    "now_local",
    "now_utc",
    "now_v1",
    "now_v6",
    "now_v7",
    "random",
];

/// `key = "…"`. All spans are the literal's: its text must name the segment.
pub(crate) fn parse_literal(literal: &LitStr, errors: &mut Errors) -> Vec<KeyPath> {
    let Ok(tokens) = literal.value().parse() else {
        errors.push(diagnostics::not_a_path(literal, &literal.value()));
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
    let expr: Expr = syn::parse2(tokens.clone())
        .map_err(|_| diagnostics::not_a_path(tokens, &spelled(tokens)))?;
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
    let mut walk = Walk {
        roots: Vec::new(),
        is_plain: true,
    };
    if assertion == Assertion::Stable {
        walk.assert(inner)?;
    } else {
        walk.path(inner)?;
    }
    let text = spelled(&inner.to_token_stream());
    let text = text.trim_start_matches('&').to_owned();
    let tokens = inner.to_token_stream();
    let span = if assertion == Assertion::Stable {
        expr.span()
    } else {
        last_span(inner)
    };
    Ok(KeyPath {
        tokens,
        roots: walk.roots,
        text,
        presence,
        assertion,
        is_plain: walk.is_plain,
        span,
    })
}

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
        _ => return Ok(None),
    };
    match args.first() {
        Some(argument) if args.len() == 1 => Ok(Some((wrapper, argument))),
        _ => Err(diagnostics::wrapper_arity(name)),
    }
}

/// What a walk through an expression finds.
struct Walk {
    roots: Vec<Ident>,
    is_plain: bool,
}

impl Walk {
    /// Fields, method calls and literal indexes, down to a name.
    fn path(&mut self, expr: &Expr) -> syn::Result<()> {
        match expr {
            Expr::Path(path) if path.qself.is_none() => match path.path.get_ident() {
                Some(root) => {
                    self.roots.push(root.clone());
                    Ok(())
                }
                None => Err(not_a_path(expr)),
            },
            Expr::Field(field) => self.path(&field.base),
            Expr::Paren(paren) => self.path(&paren.expr),
            Expr::Group(group) => self.path(&group.expr),
            Expr::Reference(reference) if reference.mutability.is_none() => {
                self.path(&reference.expr)
            }
            Expr::Index(index) if matches!(&*index.index, Expr::Lit(_)) => {
                self.is_plain = false;
                self.path(&index.expr)
            }
            Expr::MethodCall(call) => {
                self.is_plain = false;
                if is_fresh(&call.method) {
                    return Err(diagnostics::fresh_value(
                        call.method.span(),
                        &spelled(&expr.to_token_stream()),
                    ));
                }
                for argument in call
                    .args
                    .iter()
                    .filter(|argument| !matches!(argument, Expr::Lit(_)))
                {
                    self.path(argument)?;
                }
                self.path(&call.receiver)
            }
            Expr::Call(_) | Expr::Macro(_) => Err(unstable(expr)),
            _ => Err(not_a_path(expr)),
        }
    }

    /// Any expression, as long as it does not make a fresh value.
    fn assert(&mut self, expr: &Expr) -> syn::Result<()> {
        self.is_plain = matches!(expr, Expr::Path(_) | Expr::Field(_));
        self.search(expr.to_token_stream())
    }

    fn search(&mut self, tokens: TokenStream) -> syn::Result<()> {
        let mut place = Place::default();
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match &token {
                TokenTree::Group(group) => self.search(group.stream())?,
                TokenTree::Ident(ident) => {
                    let is_function = place.is_in_path() || is_called(tokens.peek());
                    if is_function && is_fresh(ident) {
                        let text = format!("{ident}()");
                        return Err(diagnostics::fresh_value(ident.span(), &text));
                    }
                    if place.may_be_variable() {
                        self.roots.push(ident.clone());
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            place.pass(&token);
        }
        Ok(())
    }
}

/// `name(…)`, `name!`, `name::<T>(…)`
fn is_called(next: Option<&TokenTree>) -> bool {
    match next {
        Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Parenthesis,
        Some(TokenTree::Punct(punct)) => matches!(punct.as_char(), '!' | ':'),
        _ => false,
    }
}

fn is_fresh(name: &Ident) -> bool {
    FRESH.contains(&name.unraw().to_string().as_str())
}

fn unstable(expr: &Expr) -> syn::Error {
    let text = spelled(&expr.to_token_stream());
    let called = match expr {
        Expr::Call(call) => match &*call.func {
            Expr::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
            _ => None,
        },
        Expr::Macro(mac) => mac.mac.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    };
    match called {
        Some(name) if is_fresh(name) => diagnostics::fresh_value(name.span(), &text),
        _ => diagnostics::unasserted_call(expr, &text),
    }
}

fn not_a_path(expr: &Expr) -> syn::Error {
    diagnostics::not_a_path(expr, &spelled(&expr.to_token_stream()))
}

/// Where a type error of the part belongs: the last segment.
fn last_span(expr: &Expr) -> Span {
    match expr {
        Expr::Field(field) => match &field.member {
            Member::Named(name) => name.span(),
            Member::Unnamed(index) => index.span,
        },
        Expr::MethodCall(call) => call.method.span(),
        Expr::Reference(reference) => last_span(&reference.expr),
        Expr::Paren(paren) => last_span(&paren.expr),
        Expr::Group(group) => last_span(&group.expr),
        other => other.span(),
    }
}

/// Tokens as a person writes them in a key: `msg.id`, `f(a, b)`.
fn spelled(tokens: &TokenStream) -> String {
    let mut text = String::new();
    spell(tokens.clone(), &mut text);
    text
}

fn spell(tokens: TokenStream, text: &mut String) {
    for token in tokens {
        let TokenTree::Group(group) = token else {
            let token = token.to_string();
            let is_word = |letter: char| letter.is_alphanumeric() || "_\"".contains(letter);
            if text.ends_with(',') || text.ends_with(is_word) && token.starts_with(is_word) {
                text.push(' ');
            }
            text.push_str(&token);
            continue;
        };
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::None => ("", ""),
        };
        text.push_str(open);
        spell(group.stream(), text);
        text.push_str(close);
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
