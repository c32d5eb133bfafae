//! Any expression, as long as it makes no fresh value and ends where it began.

use proc_macro2::{Delimiter, Spacing, Span, TokenStream, TokenTree};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Arm, Block, Error, Expr, ExprAsync, ExprCall, ExprClosure, ExprForLoop, ExprIf, ExprLet,
    ExprMethodCall, ExprPath, ExprWhile, Ident, Item, Local, Macro, PatIdent, Token,
};

use super::captures::captures;
use super::fresh::{is_fresh, is_fresh_path};
use super::{Found, Place};
use crate::diagnostics;

pub(super) fn search(expr: &Expr) -> syn::Result<Found> {
    let mut search = Search::default();
    search.visit_expr(expr);
    match search.mistake {
        Some(mistake) => Err(mistake),
        None => Ok(Found {
            roots: search.named,
            is_plain: matches!(expr, Expr::Path(_) | Expr::Field(_)),
        }),
    }
}

/// The word that leaves the place where the key is made, and which it is.
pub(super) fn leaving(expr: &Expr) -> Option<(Span, &'static str)> {
    match expr {
        Expr::Await(expr) => Some((expr.await_token.span(), "await")),
        Expr::Return(expr) => Some((expr.return_token.span(), "return")),
        Expr::Try(expr) => Some((expr.question_token.span(), "?")),
        _ => None,
    }
}

#[derive(Default)]
struct Search {
    named: Vec<Ident>,
    /// By a closure, a `let`, an arm around: other variables, whatever their names.
    bound: Vec<Ident>,
    /// The first one.
    mistake: Option<Error>,
    /// Closures and `async` blocks around, which `return` and `?` leave instead.
    depth: usize,
}

impl Search {
    fn refuse(&mut self, mistake: Error) {
        self.mistake.get_or_insert(mistake);
    }

    /// What is bound in here is not bound outside.
    fn scoped(&mut self, visit: impl FnOnce(&mut Self)) {
        let outer = self.bound.len();
        visit(self);
        self.bound.truncate(outer);
    }

    /// The same, and `return` and `?` leave only this.
    fn body(&mut self, visit: impl FnOnce(&mut Self)) {
        self.depth += 1;
        self.scoped(visit);
        self.depth -= 1;
    }

    fn name(&mut self, name: &Ident) {
        if !self.bound.contains(name) {
            self.named.push(name.clone());
        }
    }

    fn check_call(&mut self, name: &Ident) {
        if is_fresh(name) {
            self.refuse(diagnostics::fresh_value(name.span(), &format!("{name}()")));
        }
    }

    /// What does not parse as an expression.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut place = Place::default();
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let next = tokens.peek();
            match &token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(ident) => {
                    if place.is_in_path() || is_called(next) {
                        self.check_call(ident);
                    }
                    if place.may_be_variable() && !is_colon(next) {
                        self.name(ident);
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            place.pass(&token);
        }
    }
}

impl Visit<'_> for Search {
    fn visit_expr(&mut self, expr: &Expr) {
        match leaving(expr) {
            Some((span, word)) if self.depth == 0 || word == "await" => {
                self.refuse(diagnostics::leaves_the_key(span, word));
            }
            _ => visit::visit_expr(self, expr),
        }
    }

    fn visit_expr_path(&mut self, expr: &ExprPath) {
        match expr.path.get_ident() {
            Some(name) => self.name(name),
            None if is_fresh_path(&expr.path) => {
                let names: Vec<_> = expr
                    .path
                    .segments
                    .iter()
                    .map(|segment| &segment.ident)
                    .collect();
                if let Some((name, before)) = names.split_last() {
                    let ty = before.last();
                    let text =
                        ty.map_or_else(|| format!("{name}()"), |ty| format!("{ty}::{name}()"));
                    self.refuse(diagnostics::fresh_value(name.span(), &text));
                }
            }
            None => {}
        }
        visit::visit_expr_path(self, expr);
    }

    fn visit_expr_call(&mut self, call: &ExprCall) {
        if let Expr::Path(path) = &*call.func
            && let Some(name) = path.path.get_ident()
        {
            self.check_call(name);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &ExprMethodCall) {
        self.check_call(&call.method);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_closure(&mut self, closure: &ExprClosure) {
        self.body(|search| visit::visit_expr_closure(search, closure));
    }

    fn visit_expr_async(&mut self, block: &ExprAsync) {
        self.body(|search| visit::visit_expr_async(search, block));
    }

    fn visit_block(&mut self, block: &Block) {
        self.scoped(|search| visit::visit_block(search, block));
    }

    fn visit_arm(&mut self, arm: &Arm) {
        self.scoped(|search| visit::visit_arm(search, arm));
    }

    fn visit_expr_if(&mut self, branches: &ExprIf) {
        self.scoped(|search| {
            search.visit_expr(&branches.cond);
            search.visit_block(&branches.then_branch);
        });
        if let Some((_, other)) = &branches.else_branch {
            self.visit_expr(other);
        }
    }

    fn visit_expr_while(&mut self, repeated: &ExprWhile) {
        self.scoped(|search| visit::visit_expr_while(search, repeated));
    }

    fn visit_expr_for_loop(&mut self, repeated: &ExprForLoop) {
        self.visit_expr(&repeated.expr);
        self.scoped(|search| {
            search.visit_pat(&repeated.pat);
            search.visit_block(&repeated.body);
        });
    }

    fn visit_expr_let(&mut self, condition: &ExprLet) {
        self.visit_expr(&condition.expr);
        self.visit_pat(&condition.pat);
    }

    fn visit_local(&mut self, local: &Local) {
        if let Some(init) = &local.init {
            visit::visit_local_init(self, init);
        }
        self.visit_pat(&local.pat);
    }

    fn visit_pat_ident(&mut self, pat: &PatIdent) {
        self.bound.push(pat.ident.clone());
        visit::visit_pat_ident(self, pat);
    }

    fn visit_macro(&mut self, call: &Macro) {
        if let Some(last) = call.path.segments.last() {
            self.check_call(&last.ident);
        }
        let captured = captures(call);
        if !captured.is_empty() {
            self.refuse(diagnostics::captured(call.tokens.span(), &captured));
        }
        let arguments = Punctuated::<Expr, Token![,]>::parse_terminated;
        match arguments.parse2(call.tokens.clone()) {
            Ok(arguments) => arguments.iter().for_each(|argument| match argument {
                Expr::Assign(named) => self.visit_expr(&named.right),
                argument => self.visit_expr(argument),
            }),
            Err(_) => self.tokens(call.tokens.clone()),
        }
    }

    /// An item sees no variable.
    fn visit_item(&mut self, _: &Item) {}
}

/// `name(…)`, `name!`, `name::<T>(…)`
fn is_called(next: Option<&TokenTree>) -> bool {
    match next {
        Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Parenthesis,
        Some(TokenTree::Punct(punct)) => matches!(punct.as_char(), '!' | ':'),
        _ => false,
    }
}

/// `name:`, as a field is written; not `name::`.
fn is_colon(next: Option<&TokenTree>) -> bool {
    matches!(next, Some(TokenTree::Punct(punct))
        if punct.as_char() == ':' && punct.spacing() == Spacing::Alone)
}
