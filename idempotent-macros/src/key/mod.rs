//! From what stands in the attribute to paths from parameters.
//!
//! `parse` makes a [`KeyPath`], in which nothing but paths, wrappers and
//! asserted expressions can be expressed; `bind` makes a [`BoundPath`], whose
//! root is a parameter of the handler.

mod asserted;
mod bind;
mod captures;
mod fresh;
mod judge;
mod parse;
mod path;
mod spell;
mod tail;
mod unstable;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::Ident;

pub(crate) use bind::bind;
pub(crate) use fresh::makes_fresh_by_default;
pub(crate) use judge::{judge_names, judge_offset};
pub(crate) use parse::{parse_literal, parse_tokens};
pub(crate) use spell::spelled;
pub(crate) use tail::Tail;
#[cfg(test)]
pub(crate) use unstable::unstable_names;
pub(crate) use unstable::{Instability, is_offset, names_partition};

/// A part of the key, not yet bound.
pub(crate) struct KeyPath {
    /// The expression without its wrappers.
    pub(crate) tokens: TokenStream,
    /// The names it starts from. A path has one root, and more in the arguments
    /// of its calls; an asserted expression has any number of candidates.
    pub(crate) roots: Vec<Ident>,
    /// The part as it is named in messages and in the default scope.
    pub(crate) text: String,
    /// The same with its wrappers.
    pub(crate) written: String,
    /// The value that it is a form of: `event.id` of `&event.id.clone()`.
    pub(crate) value: String,
    pub(crate) presence: Presence,
    pub(crate) assertion: Assertion,
    /// The names that tell what the part stands for, unless it is asserted.
    pub(crate) tails: Vec<Tail>,
    /// A default scope names parameters and fields, no other expression.
    pub(crate) is_plain: bool,
    pub(crate) span: Span,
}

/// What the absence of an `Option` means.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Presence {
    Always,
    Required,
    Nullable,
}

/// Whether a value is said to be the same at every delivery.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Assertion {
    None,
    Stable,
}

/// The function of the runtime that writes a part of a key, or a field of a
/// derived type.
pub(crate) const fn writer(presence: Presence, assertion: Assertion) -> &'static str {
    match (presence, assertion) {
        (Presence::Always, Assertion::None) => "part",
        (Presence::Always, Assertion::Stable) => "stable_part",
        (Presence::Required, Assertion::None) => "required_part",
        (Presence::Required, Assertion::Stable) => "required_stable_part",
        (Presence::Nullable, Assertion::None) => "nullable_part",
        (Presence::Nullable, Assertion::Stable) => "nullable_stable_part",
    }
}

/// What an expression is found to be made of.
struct Found {
    roots: Vec<Ident>,
    is_plain: bool,
}

/// Where a walk through the tokens of an expression stands.
#[derive(Default)]
struct Place {
    dots: u8,
    colons: u8,
}

impl Place {
    fn pass(&mut self, token: &TokenTree) {
        let punct = match token {
            TokenTree::Punct(punct) => punct.as_char(),
            _ => ' ',
        };
        self.dots = if punct == '.' {
            self.dots.saturating_add(1)
        } else {
            0
        };
        self.colons = if punct == ':' {
            self.colons.saturating_add(1)
        } else {
            0
        };
    }

    /// `name`, but neither `.name` nor `::name`.
    fn may_be_variable(&self) -> bool {
        self.dots != 1 && !self.is_in_path()
    }

    /// `::name`
    fn is_in_path(&self) -> bool {
        self.colons == 2
    }
}

/// A part of the key whose root is a parameter.
pub(crate) struct BoundPath {
    pub(crate) tokens: TokenStream,
    /// The names that it may change, as a method with `&mut self` does.
    pub(crate) changeable: Vec<Ident>,
    pub(crate) text: String,
    pub(crate) written: String,
    pub(crate) presence: Presence,
    pub(crate) assertion: Assertion,
    pub(crate) span: Span,
}
