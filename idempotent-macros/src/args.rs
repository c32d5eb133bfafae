//! What the attribute says: syntax only.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Ident, LitStr, Path, Token};

use crate::diagnostics::{self, Errors};
use crate::key::{self, KeyPath};

/// The arguments of the attribute, each with the span that names it.
#[derive(Default)]
pub(crate) struct Args {
    /// The parts, not yet bound to parameters.
    pub(crate) key: Vec<KeyPath>,
    pub(crate) scope: Option<LitStr>,
    pub(crate) tx: Option<Ident>,
    pub(crate) skip: Vec<Ident>,
    pub(crate) guard: Guard,
    pub(crate) bind: Option<Ident>,
    pub(crate) table: Option<LitStr>,
    pub(crate) runtime: Option<Path>,
}

#[derive(Clone, Copy, Default, Eq, PartialEq)]
pub(crate) enum Guard {
    #[default]
    Verify,
    Savepoint,
}

/// The arguments, with an example of each, which an error shows.
pub(crate) const EXAMPLES: [(&str, &str); 8] = [
    ("key", "key = \"event.id, channel\""),
    ("scope", "scope = \"orders.accept\""),
    ("tx", "tx = transaction"),
    ("skip", "skip(mailer, config)"),
    ("guard", "guard = \"savepoint\""),
    ("bind", "bind = claim"),
    ("table", "table = \"inbox.processed_messages\""),
    ("crate", "crate = my_company::idempotent_runtime"),
];

pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Args {
    let mut args = Args::default();
    let mut seen: Vec<String> = Vec::new();
    let mut is_understood = true;
    for Piece { tokens, .. } in split(tokens)
        .into_iter()
        .filter(|argument| !argument.tokens.is_empty())
    {
        let Some((name, value)) = name_and_value(tokens, errors) else {
            is_understood = false;
            continue;
        };
        let text = name.to_string();
        if !EXAMPLES.iter().any(|(known, _)| *known == text) {
            errors.push(diagnostics::unknown_argument(&name));
            is_understood = false;
        } else if seen.contains(&text) {
            errors.push(diagnostics::repeated_argument(&name));
        } else {
            args.set(&name, value, errors);
            seen.push(text);
        }
    }
    // An argument that is not understood may be the key.
    if is_understood && !seen.iter().any(|name| name == "key") {
        errors.push(diagnostics::missing_key());
    }
    args
}

/// What follows the name of an argument.
enum Value {
    Nothing,
    Assigned(TokenStream),
    Listed(Group),
}

impl Args {
    fn set(&mut self, name: &Ident, value: Value, errors: &mut Errors) {
        let result = match name.to_string().as_str() {
            "key" => value.key(name, errors).map(|key| self.key = key),
            "scope" => value
                .string(name)
                .and_then(scope)
                .map(|scope| self.scope = Some(scope)),
            "tx" => value.ident(name).map(|tx| self.tx = Some(tx)),
            "skip" => value.idents(name).map(|skip| self.skip = skip),
            "guard" => value
                .string(name)
                .and_then(|text| guard(&text))
                .map(|guard| self.guard = guard),
            "bind" => value.ident(name).map(|bind| self.bind = Some(bind)),
            "table" => value
                .string(name)
                .and_then(table)
                .map(|table| self.table = Some(table)),
            _ => value.path(name).map(|path| self.runtime = Some(path)),
        };
        if let Err(error) = result {
            errors.push(error);
        }
    }
}

impl Value {
    /// `key = "…"` or `key(…)`.
    fn key(self, name: &Ident, errors: &mut Errors) -> syn::Result<Vec<KeyPath>> {
        Ok(match self {
            Self::Listed(list) => {
                key::parse_tokens(list.stream(), list.delim_span().close(), errors)
            }
            value => key::parse_literal(&value.string(name)?, errors),
        })
    }

    fn string(self, name: &Ident) -> syn::Result<LitStr> {
        self.assigned(name, Parse::parse)
    }

    fn ident(self, name: &Ident) -> syn::Result<Ident> {
        self.assigned(name, Parse::parse)
    }

    /// A path, bare or in a string.
    fn path(self, name: &Ident) -> syn::Result<Path> {
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

    fn idents(self, name: &Ident) -> syn::Result<Vec<Ident>> {
        let Self::Listed(list) = self else {
            return Err(diagnostics::argument_shape(name, name.span()));
        };
        let span = first_span(&list.stream()).unwrap_or_else(|| name.span());
        let idents = Punctuated::<Ident, Token![,]>::parse_terminated.parse2(list.stream());
        Ok(idents
            .map_err(|_| diagnostics::argument_shape(name, span))?
            .into_iter()
            .collect())
    }
}

fn scope(text: LitStr) -> syn::Result<LitStr> {
    let value = text.value();
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:(),-".contains(&byte);
    if !value.is_empty() && value.len() <= 128 && value.bytes().all(is_allowed) {
        Ok(text)
    } else {
        Err(diagnostics::scope_alphabet(&text))
    }
}

fn guard(text: &LitStr) -> syn::Result<Guard> {
    match text.value().as_str() {
        "verify" => Ok(Guard::Verify),
        "savepoint" => Ok(Guard::Savepoint),
        _ => Err(diagnostics::unknown_guard(text)),
    }
}

/// The same rule as `Table::named` of the runtime.
fn table(text: LitStr) -> syn::Result<LitStr> {
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

fn name_and_value(argument: Vec<TokenTree>, errors: &mut Errors) -> Option<(Ident, Value)> {
    let mut tokens = argument.into_iter();
    let name = match tokens.next()? {
        TokenTree::Ident(name) => name,
        other => {
            errors.push(diagnostics::argument_name(other.span()));
            return None;
        }
    };
    let value = match tokens.next() {
        None => Value::Nothing,
        Some(TokenTree::Punct(punct)) if punct.as_char() == '=' => {
            Value::Assigned(tokens.collect())
        }
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
            match tokens.next() {
                None => Value::Listed(group),
                Some(extra) => {
                    errors.push(diagnostics::missing_comma(extra.span()));
                    return None;
                }
            }
        }
        Some(other) => {
            errors.push(diagnostics::argument_shape(&name, other.span()));
            return None;
        }
    };
    Some((name, value))
}

/// What stands between two commas.
#[derive(Default)]
pub(crate) struct Piece {
    pub(crate) tokens: Vec<TokenTree>,
    /// The comma after it.
    pub(crate) comma: Option<Span>,
}

/// Splits at commas that stand outside brackets. A trailing comma is none.
pub(crate) fn split(tokens: TokenStream) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut piece = Piece::default();
    let mut angles = 0_u32;
    for token in tokens {
        let is_turbofish = piece.tokens.last().is_some_and(|last| is(last, ':'));
        if is(&token, ',') && angles == 0 {
            piece.comma = Some(token.span());
            pieces.push(std::mem::take(&mut piece));
            continue;
        }
        if is(&token, '<') && (is_turbofish || angles > 0) {
            angles += 1;
        } else if is(&token, '>') {
            angles = angles.saturating_sub(1);
        }
        piece.tokens.push(token);
    }
    if pieces.is_empty() || !piece.tokens.is_empty() {
        pieces.push(piece);
    }
    pieces
}

fn is(token: &TokenTree, punct: char) -> bool {
    matches!(token, TokenTree::Punct(token) if token.as_char() == punct)
}

fn first_span(tokens: &TokenStream) -> Option<Span> {
    tokens.clone().into_iter().next().map(|token| token.span())
}
