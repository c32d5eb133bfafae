//! What follows the name of an argument.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Ident, LitStr, Path, Token};

use crate::args::{Busy, Each, Guard, Period, Was, name_and_value};
use crate::diagnostics;
use crate::key::{self, KeyPath};
use crate::mistakes::Errors;
use crate::pieces::{Piece, split};

pub(crate) enum Value {
    Nothing,
    Assigned(TokenStream),
    Listed(Group),
}

impl Value {
    /// Says whether it stands in a string.
    pub(crate) fn is_assigned(&self) -> bool {
        matches!(self, Self::Assigned(_))
    }

    /// `key = "…"` or `key(…)`: the parts that can be read, and the mistakes in
    /// the others.
    pub(crate) fn key(self, name: &Ident) -> syn::Result<(Vec<KeyPath>, Errors)> {
        let mut mistakes = Errors::default();
        let key = match self {
            Self::Listed(list) => {
                key::parse_tokens(list.stream(), list.delim_span().close(), &mut mistakes)
            }
            value => key::parse_literal(&value.string(name)?, &mut mistakes),
        };
        Ok((key, mistakes))
    }

    pub(crate) fn scope(self, name: &Ident) -> syn::Result<LitStr> {
        scope_of(self.string(name)?)
    }

    /// An argument that stands for itself.
    pub(crate) fn flag(self, name: &Ident) -> syn::Result<()> {
        match self {
            Self::Nothing => Ok(()),
            _ => Err(diagnostics::argument_shape(name, name.span())),
        }
    }

    /// `"7 days"`, in whole seconds, of which there is at least one; a part of one
    /// counts as a whole.
    pub(crate) fn period(self, name: &Ident) -> syn::Result<Period> {
        let written = self.string(name)?;
        match humantime::parse_duration(&written.value()) {
            Ok(period) if (1..=MOST_SECONDS).contains(&period.as_secs()) => Ok(Period {
                seconds: period.as_secs() + u64::from(period.subsec_nanos() > 0),
                written,
            }),
            _ => Err(diagnostics::unread_period(&written)),
        }
    }

    /// `was("…")`, or `was(scope = "…", key(…))` with one of the two or both.
    pub(crate) fn was(self, name: &Ident) -> syn::Result<(Was, Errors)> {
        let Self::Listed(list) = self else {
            return Err(diagnostics::argument_shape(name, name.span()));
        };
        let mut was = Was {
            scope: None,
            key: None,
            name: name.span(),
            key_name: None,
            is_whole: true,
        };
        let mut mistakes = Errors::default();
        if let Ok(scope) = syn::parse2::<LitStr>(list.stream()) {
            was.scope = Some(scope_of(scope)?);
            return Ok((was, mistakes));
        }
        for Piece { tokens, .. } in split(list.stream()) {
            let first = tokens.first().map_or(list.span(), TokenTree::span);
            let Ok((part, value)) = name_and_value(tokens, None) else {
                return Err(diagnostics::argument_shape(name, first));
            };
            match part.to_string().as_str() {
                "scope" if was.scope.is_none() => was.scope = Some(value.scope(&part)?),
                "key" if was.key.is_none() => {
                    let (key, of_key) = value.key(&part)?;
                    was.key = Some(key);
                    was.key_name = Some(part.span());
                    was.is_whole = of_key.is_empty();
                    mistakes = of_key;
                }
                _ => return Err(diagnostics::argument_shape(name, first)),
            }
        }
        Ok((was, mistakes))
    }

    /// `"event in events"`
    pub(crate) fn each(self, name: &Ident) -> syn::Result<Each> {
        let text = self.string(name)?;
        let each = |input: ParseStream<'_>| {
            let element = input.parse()?;
            input.parse::<Token![in]>()?;
            let list = input.parse()?;
            Ok(Each { element, list })
        };
        text.parse_with(each)
            .map_err(|_| diagnostics::argument_shape(name, text.span()))
    }

    pub(crate) fn busy(self, name: &Ident) -> syn::Result<Busy> {
        let text = self.string(name)?;
        match text.value().as_str() {
            "wait" => Ok(Busy::Wait),
            "fail" => Ok(Busy::Fail),
            _ => Err(diagnostics::unknown_busy(&text)),
        }
    }

    pub(crate) fn guard(self, name: &Ident) -> syn::Result<Guard> {
        let text = self.string(name)?;
        match text.value().as_str() {
            "verify" => Ok(Guard::Verify),
            "savepoint" => Ok(Guard::Savepoint),
            _ => Err(diagnostics::unknown_guard(&text)),
        }
    }

    /// The same rule as `Table::named` of the runtime.
    pub(crate) fn table(self, name: &Ident) -> syn::Result<LitStr> {
        let text = self.string(name)?;
        let value = text.value();
        let is_name = |name: &str| {
            name.len() <= 63
                && name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        };
        if value.splitn(3, '.').count() <= 2 && value.split('.').all(is_name) {
            Ok(text)
        } else {
            Err(diagnostics::table_name(&text))
        }
    }

    fn string(self, name: &Ident) -> syn::Result<LitStr> {
        self.assigned(name, Parse::parse)
    }

    pub(crate) fn ident(self, name: &Ident) -> syn::Result<Ident> {
        self.assigned(name, Parse::parse)
    }

    /// A path, bare or in a string.
    pub(crate) fn path(self, name: &Ident) -> syn::Result<Path> {
        self.assigned(name, |input| {
            if input.peek(LitStr) {
                let literal: LitStr = input.parse()?;
                literal.parse_with(Path::parse_mod_style)
            } else {
                Path::parse_mod_style(input)
            }
        })
    }

    fn assigned<T>(
        self,
        name: &Ident,
        value: impl FnOnce(ParseStream<'_>) -> syn::Result<T>,
    ) -> syn::Result<T> {
        let Self::Assigned(tokens) = self else {
            return Err(diagnostics::argument_shape(name, name.span()));
        };
        let span = first_span(&tokens).unwrap_or_else(|| name.span());
        let parser = |input: ParseStream<'_>| Ok((value(input)?, input.parse::<TokenStream>()?));
        let (value, rest) = parser
            .parse2(tokens)
            .map_err(|_| diagnostics::argument_shape(name, span))?;
        match rest.into_iter().next() {
            None => Ok(value),
            Some(TokenTree::Ident(next)) => Err(diagnostics::missing_comma(next.span())),
            Some(_) => Err(diagnostics::argument_shape(name, span)),
        }
    }

    pub(crate) fn idents(self, name: &Ident) -> syn::Result<Vec<Ident>> {
        let Self::Listed(list) = self else {
            return Err(diagnostics::argument_shape(name, name.span()));
        };
        let span = first_span(&list.stream()).unwrap_or_else(|| name.span());
        let idents = |input: ParseStream<'_>| {
            Punctuated::<Ident, Token![,]>::parse_terminated_with(input, Ident::parse_any)
        };
        match idents.parse2(list.stream()) {
            Ok(idents) => Ok(idents.into_iter().collect()),
            Err(_) => Err(diagnostics::argument_shape(name, span)),
        }
    }
}

/// A hundred years: more is a mistake, and overflows the times of some databases.
const MOST_SECONDS: u64 = 100 * 366 * 24 * 60 * 60;

fn scope_of(text: LitStr) -> syn::Result<LitStr> {
    let value = text.value();
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:(),-".contains(&byte);
    if !value.is_empty() && value.len() <= 128 && value.bytes().all(is_allowed) {
        Ok(text)
    } else {
        Err(diagnostics::scope_alphabet(&text))
    }
}

fn first_span(tokens: &TokenStream) -> Option<Span> {
    tokens.clone().into_iter().next().map(|token| token.span())
}
