//! What a field is given where a message came without it.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprAssign, ExprLit, Lit, LitStr, Meta, Path, spanned::Spanned};

use crate::key::makes_fresh_by_default;
use crate::nesting;
use crate::pieces::{Piece, split};

/// Attributes of crates that read messages: `#[serde(default = "Uuid::new_v4")]`.
const READERS: [&str; 3] = ["serde", "facet", "nserde"];

/// Attributes of crates that implement `Default`: `#[default(Uuid::new_v4())]`.
const MAKERS: [&str; 3] = ["default", "derivative", "educe"];

/// A call that makes another value every time, and where it is written.
pub(super) struct FreshDefault {
    pub(super) text: String,
    pub(super) span: Span,
}

/// Whether absent fields are those of the type's `Default`.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Absent {
    Refused,
    Default,
}

impl Absent {
    /// `#[serde(default)]` on the type.
    pub(super) fn of(attributes: &[Attribute]) -> Self {
        let mut defaults = attributes.iter().flat_map(defaults);
        if defaults.any(|value| value.is_none()) {
            Self::Default
        } else {
            Self::Refused
        }
    }
}

impl FreshDefault {
    /// What the attributes of a field, or of a whole type, say of an absent value.
    pub(super) fn find(attributes: &[Attribute], absent: Absent) -> Option<Self> {
        let read = attributes.iter().flat_map(defaults).flatten();
        let made = attributes
            .iter()
            .filter(|attribute| absent == Absent::Default && is_one_of(attribute, &MAKERS))
            .filter_map(|attribute| match &attribute.meta {
                Meta::List(list) => syn::parse2(list.tokens.clone()).ok(),
                Meta::Path(_) | Meta::NameValue(_) => None,
            });
        read.chain(made).find_map(|value: Expr| {
            let mut search = Search { found: None };
            search.visit_expr(&value);
            search.found
        })
    }
}

fn is_one_of(attribute: &Attribute, names: &[&str]) -> bool {
    names.iter().any(|name| attribute.path().is_ident(name))
}

/// Each `default` in `#[serde(…)]`, with what stands after its `=`: a path or an
/// expression, in a string where its crate wants one.
fn defaults(attribute: &Attribute) -> Vec<Option<Expr>> {
    let tokens = match &attribute.meta {
        Meta::List(list) if is_one_of(attribute, &READERS) => list.tokens.clone(),
        _ => return Vec::new(),
    };
    let is_code_quoted = !attribute.path().is_ident("facet");
    let default = |piece: Piece| {
        let mut tokens = piece.tokens.into_iter();
        let is_default = |token: TokenTree| token.to_string() == "default";
        tokens.next().is_some_and(is_default).then(|| {
            tokens.next()?; // `=`
            let value = syn::parse2(tokens.collect()).ok()?;
            Some(if is_code_quoted {
                unquoted(value)
            } else {
                value
            })
        })
    };
    split(tokens).into_iter().filter_map(default).collect()
}

/// The code in a string, unless it nests too deeply to be any.
fn unquoted(value: Expr) -> Expr {
    let Some(literal) = code(&value).filter(|literal| literal.value().len() < 1024) else {
        return value;
    };
    let is_deep = |tokens: TokenStream| nesting::too_deep(tokens).is_some();
    if literal.value().parse().is_ok_and(is_deep) {
        return value;
    }
    literal.parse().unwrap_or(value)
}

fn code(value: &Expr) -> Option<&LitStr> {
    match value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(literal),
            ..
        }) => Some(literal),
        _ => None,
    }
}

/// For the first path to what makes a fresh value.
struct Search {
    found: Option<FreshDefault>,
}

impl Visit<'_> for Search {
    fn visit_path(&mut self, path: &Path) {
        if makes_fresh_by_default(path) {
            self.found.get_or_insert_with(|| FreshDefault {
                text: spell(path),
                span: path.segments.last().map_or(path.span(), Spanned::span),
            });
        }
        visit::visit_path(self, path);
    }

    /// `_code = "…"` and `Default(value = "…")` hold code, other strings do not.
    fn visit_expr_assign(&mut self, assigned: &ExprAssign) {
        let is_code = matches!(&*assigned.left, Expr::Path(name)
            if ["_code", "value"].iter().any(|known| name.path.is_ident(known)));
        if is_code {
            self.visit_expr(&unquoted((*assigned.right).clone()));
        } else {
            self.visit_expr(&assigned.right);
        }
    }
}

fn spell(path: &Path) -> String {
    let names: Vec<String> = path
        .segments
        .iter()
        .map(|segment| segment.ident.to_string())
        .collect();
    names.join("::")
}
