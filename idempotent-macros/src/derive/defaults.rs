//! What a field is given where a message came without it.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, LitStr, Meta, Path, spanned::Spanned};

use crate::key::makes_fresh_by_default;
use crate::pieces::split;

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
                Meta::List(list) => Some(list.tokens.clone()),
                Meta::Path(_) | Meta::NameValue(_) => None,
            });
        read.chain(made).find_map(Self::called)
    }

    fn called(value: TokenStream) -> Option<Self> {
        let mut search = Search { found: None };
        search.visit_expr(&syn::parse2(value).ok()?);
        search.found
    }
}

fn is_one_of(attribute: &Attribute, names: &[&str]) -> bool {
    names.iter().any(|name| attribute.path().is_ident(name))
}

/// Each `default` in `#[serde(…)]`, with what stands after its `=`.
fn defaults(attribute: &Attribute) -> Vec<Option<TokenStream>> {
    let tokens = match &attribute.meta {
        Meta::List(list) if is_one_of(attribute, &READERS) => list.tokens.clone(),
        _ => return Vec::new(),
    };
    split(tokens)
        .into_iter()
        .filter_map(|piece| {
            let mut tokens = piece.tokens.into_iter();
            let is_default = |token: TokenTree| token.to_string() == "default";
            tokens.next().is_some_and(is_default).then(|| {
                tokens.next()?; // `=`
                Some(tokens.collect())
            })
        })
        .collect()
}

/// For the first path to what makes a fresh value, also in a string.
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

    fn visit_lit_str(&mut self, literal: &LitStr) {
        if let Ok(expr) = literal.parse::<Expr>() {
            self.visit_expr(&expr);
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
