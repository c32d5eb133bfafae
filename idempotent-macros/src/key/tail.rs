//! The last segment of a part, by whose name it is judged.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Expr, ExprMethodCall, Ident, Lit, Member};

/// A name, and where it stands.
pub(crate) struct Tail {
    pub(crate) name: String,
    pub(crate) span: Span,
}

/// Methods that give the same value in another form: `msg.ts.to_string()` is
/// still a `ts`.
const FORMS: &[&str] = &[
    "as_bytes",
    "as_deref",
    "as_micros",
    "as_millis",
    "as_nanos",
    "as_ref",
    "as_secs",
    "as_str",
    "borrow",
    "clone",
    "cloned",
    "copied",
    "deref",
    "expect",
    "into",
    "into_inner",
    "to_bytes",
    "to_owned",
    "to_string",
    "to_vec",
    "trim",
    "unwrap",
    "unwrap_or",
    "unwrap_or_default",
];

impl Tail {
    pub(super) fn of(expr: &Expr) -> Option<Self> {
        match expr {
            Expr::Path(path) => path.path.get_ident().map(Self::named),
            Expr::Field(field) => match &field.member {
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
        }
    }

    /// `headers.get("x-retry-count")` is `x_retry_count`, `id()` is `id`.
    fn of_call(call: &ExprMethodCall) -> Option<Self> {
        let method = call.method.unraw().to_string();
        if FORMS.contains(&&*method) {
            return Self::of(&call.receiver);
        }
        let entry = call.args.first().filter(|_| method == "get");
        entry
            .and_then(Self::quoted)
            .or_else(|| Some(Self::named(&call.method)))
    }

    /// The name of a header, as a field would have it.
    fn quoted(literal: &Expr) -> Option<Self> {
        let Expr::Lit(literal) = literal else {
            return None;
        };
        let Lit::Str(name) = &literal.lit else {
            return None;
        };
        let name = name.value().to_ascii_lowercase().replace('-', "_");
        Some(Self {
            name,
            span: literal.span(),
        })
    }
}
