//! The names by which a part is judged: its last segment's, and those of what
//! its calls are given.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Expr, ExprMethodCall, Ident, Lit, Member, UnOp};

/// A name, and where it stands.
pub(crate) struct Tail {
    pub(crate) name: String,
    pub(crate) span: Span,
    /// It is a parameter, and nothing of it.
    pub(crate) is_root: bool,
}

/// Methods that give the same value in another form, as `as_…`, `to_…` and
/// `into_…` do: `msg.ts.to_string()` is still a `ts`.
const FORMS: &[&str] = &[
    "borrow", "clone", "cloned", "copied", "deref", "expect", "format", "get", "into", "ok", "or",
    "trim", "unwrap", "value",
];

/// Methods that look a name up: `headers.get("x-retry-count")` is a retry count.
const LOOKUPS: &[&str] = &[
    "annotation",
    "attribute",
    "field",
    "header",
    "meta",
    "metadata",
    "property",
];

/// Fields that are a unit of what they are in: `event.created_at.seconds`.
const UNITS: &[&str] = &["micros", "millis", "nanos", "seconds", "secs"];

impl Tail {
    /// All names in a part.
    pub(super) fn all(expr: &Expr) -> Vec<Self> {
        let mut found = Vec::new();
        found.extend(Self::of(expr));
        arguments(expr, &mut found);
        found
    }

    fn of(expr: &Expr) -> Option<Self> {
        match expr {
            Expr::Path(path) => path.path.get_ident().map(|name| Self {
                is_root: true,
                ..Self::named(name)
            }),
            Expr::Field(field) => match &field.member {
                Member::Named(name) if UNITS.contains(&&*name.to_string()) => {
                    Self::of(&field.base).filter(|base| !base.is_root)
                }
                Member::Named(name) => Some(Self::named(name)),
                Member::Unnamed(_) => Self::of(&field.base),
            },
            Expr::Index(index) => Self::quoted(&index.index).or_else(|| Self::of(&index.expr)),
            Expr::MethodCall(call) => Self::of_call(call),
            Expr::Group(group) => Self::of(&group.expr),
            Expr::Paren(paren) => Self::of(&paren.expr),
            Expr::Reference(reference) => Self::of(&reference.expr),
            Expr::Unary(unary) => Self::of(&unary.expr),
            _ => None,
        }
    }

    pub(crate) fn named(name: &Ident) -> Self {
        Self {
            name: name.unraw().to_string(),
            span: name.span(),
            is_root: false,
        }
    }

    fn of_call(call: &ExprMethodCall) -> Option<Self> {
        let method = call.method.unraw().to_string();
        let is_lookup = method.starts_with("get") || LOOKUPS.contains(&&*method);
        if let Some(name) = call.args.first().filter(|_| is_lookup)
            && let Some(tail) = Self::quoted(name)
        {
            return Some(tail);
        }
        if is_form(&method) {
            return Self::of(&call.receiver);
        }
        Some(Self::named(&call.method))
    }

    fn quoted(literal: &Expr) -> Option<Self> {
        let Expr::Lit(literal) = literal else {
            return None;
        };
        let name = match &literal.lit {
            Lit::Str(name) => name.value(),
            Lit::ByteStr(name) => String::from_utf8(name.value()).ok()?,
            _ => return None,
        };
        Some(Self {
            name,
            span: literal.span(),
            is_root: false,
        })
    }
}

fn is_form(method: &str) -> bool {
    let prefixes = ["as_", "to_", "into_"];
    prefixes.iter().any(|prefix| method.starts_with(prefix)) || FORMS.contains(&method)
}

/// The value of which an expression is a form.
pub(super) fn value(expr: &Expr) -> &Expr {
    match expr {
        Expr::MethodCall(call) if call.args.is_empty() && is_form(&call.method.to_string()) => {
            value(&call.receiver)
        }
        Expr::Group(group) => value(&group.expr),
        Expr::Paren(paren) => value(&paren.expr),
        Expr::Reference(reference) => value(&reference.expr),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => value(&unary.expr),
        expr => expr,
    }
}

/// What the calls of a path are given: `msg.id.max(msg.ts)`.
fn arguments(expr: &Expr, found: &mut Vec<Tail>) {
    match expr {
        Expr::MethodCall(call) => {
            for argument in &call.args {
                found.extend(Tail::all(argument));
            }
            arguments(&call.receiver, found);
        }
        Expr::Field(field) => arguments(&field.base, found),
        Expr::Index(index) => arguments(&index.expr, found),
        Expr::Group(group) => arguments(&group.expr, found),
        Expr::Paren(paren) => arguments(&paren.expr, found),
        Expr::Reference(reference) => arguments(&reference.expr, found),
        Expr::Unary(unary) => arguments(&unary.expr, found),
        _ => {}
    }
}
