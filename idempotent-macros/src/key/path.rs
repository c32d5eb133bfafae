//! Fields, method calls and literal indexes, down to a name.

use proc_macro2::{TokenStream, TokenTree};
use syn::{Error, Expr, ExprMacro, Lit, UnOp};

use super::Found;
use super::asserted::leaving;
use super::captures::{captures, is_format};
use super::fresh::{is_fresh, is_fresh_path};
use super::spell::spelled;
use crate::diagnostics;
use crate::pieces::split;

pub(super) fn walk(expr: &Expr) -> syn::Result<Found> {
    let mut found = Found {
        roots: Vec::new(),
        is_plain: true,
    };
    found.path(expr)?;
    Ok(found)
}

impl Found {
    fn path(&mut self, expr: &Expr) -> syn::Result<()> {
        match expr {
            Expr::Path(path) if path.qself.is_none() => match path.path.get_ident() {
                Some(root) => {
                    self.roots.push(root.clone());
                    Ok(())
                }
                None => Err(refused(expr)),
            },
            Expr::Field(field) => self.path(&field.base),
            Expr::Paren(paren) => self.path(&paren.expr),
            Expr::Group(group) => self.path(&group.expr),
            Expr::Reference(reference) if reference.mutability.is_none() => {
                self.is_plain = false;
                self.path(&reference.expr)
            }
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => {
                self.is_plain = false;
                self.path(&unary.expr)
            }
            Expr::Index(index) if is_literal(&index.index) => {
                self.is_plain = false;
                self.path(&index.expr)
            }
            Expr::MethodCall(call) => {
                self.is_plain = false;
                if is_fresh(&call.method) {
                    let text = spelled(expr);
                    return Err(diagnostics::fresh_value(call.method.span(), &text));
                }
                if ABSENT.contains(&&*call.method.to_string()) {
                    let option = spelled(&call.receiver);
                    let span = call.method.span();
                    return Err(diagnostics::absent_default(span, &spelled(expr), &option));
                }
                for argument in call.args.iter().filter(|argument| !is_literal(argument)) {
                    self.path(argument)?;
                }
                self.path(&call.receiver)
            }
            _ => Err(refused(expr)),
        }
    }
}

/// Methods that put a value in the place of none.
const ABSENT: [&str; 3] = ["map_or", "unwrap_or", "unwrap_or_default"];

/// `7`, `-7`
fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) => true,
        Expr::Unary(unary) => matches!(unary.op, UnOp::Neg(_)) && is_literal(&unary.expr),
        _ => false,
    }
}

/// What is no path, each kind in its own words.
fn refused(expr: &Expr) -> Error {
    let text = spelled(expr);
    if let Some((span, word)) = leaving(expr) {
        return diagnostics::leaves_the_key(span, word);
    }
    let called = match expr {
        Expr::Lit(literal) => {
            return match &literal.lit {
                Lit::Str(quoted) => diagnostics::quoted_part(quoted),
                _ => diagnostics::constant(expr, &text),
            };
        }
        Expr::Macro(call) if is_format(&call.mac) => {
            return diagnostics::formatted_part(expr, &text, &values(call));
        }
        Expr::Call(call) => match &*call.func {
            Expr::Path(path) => Some(&path.path),
            _ => None,
        },
        Expr::Macro(call) => Some(&call.mac.path),
        Expr::Tuple(tuple) if !tuple.elems.is_empty() => {
            let parts: Vec<String> = tuple.elems.iter().map(spelled).collect();
            return diagnostics::tuple_part(tuple, &text, &parts);
        }
        Expr::Tuple(_) => return diagnostics::constant(expr, &text),
        expr if is_literal(expr) => return diagnostics::constant(expr, &text),
        _ => return diagnostics::not_a_path(expr, &text),
    };
    match called {
        Some(path) if is_fresh_path(path) => match path.segments.last() {
            Some(last) => diagnostics::fresh_value(last.ident.span(), &text),
            None => diagnostics::unasserted_call(expr, &text),
        },
        _ => diagnostics::unasserted_call(expr, &text),
    }
}

/// What a `format!` puts together.
fn values(call: &ExprMacro) -> Vec<String> {
    let arguments = split(call.mac.tokens.clone()).into_iter().skip(1);
    let given = arguments.filter_map(|piece| {
        let mut tokens = piece.tokens;
        if matches!(tokens.get(1), Some(TokenTree::Punct(punct)) if punct.as_char() == '=') {
            tokens.drain(..2); // `name = value`
        }
        (!tokens.is_empty()).then(|| spelled(tokens.into_iter().collect::<TokenStream>()))
    });
    captures(&call.mac).into_iter().chain(given).collect()
}
