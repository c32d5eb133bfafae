//! What the attribute says: syntax only.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::{Ident, LitStr, Path};

use crate::diagnostics;
use crate::key::KeyPath;
use crate::mistakes::{Errors, near};
use crate::pieces::{Piece, split};
use crate::value::Value;

/// The arguments of the attribute, each with the span that names it.
#[derive(Default)]
pub(crate) struct Args {
    /// The parts, not yet bound to parameters.
    pub(crate) key: Vec<KeyPath>,
    /// The word `key`.
    pub(crate) key_name: Option<Span>,
    /// `key = "…"`, not `key(…)`.
    pub(crate) is_key_quoted: bool,
    pub(crate) scope: Option<LitStr>,
    pub(crate) tx: Option<Ident>,
    pub(crate) skip: Vec<Ident>,
    /// The word `replay`.
    pub(crate) replay: Option<Span>,
    /// Parts, as those of the key.
    pub(crate) fingerprint: Vec<KeyPath>,
    pub(crate) fingerprint_name: Option<Span>,
    pub(crate) retain: Option<Period>,
    pub(crate) redelivery: Option<Period>,
    pub(crate) busy: Busy,
    pub(crate) busy_name: Option<Span>,
    pub(crate) each: Option<Each>,
    /// Earlier names, the last one the oldest.
    pub(crate) was: Vec<Was>,
    pub(crate) guard: Guard,
    pub(crate) bind: Option<Ident>,
    pub(crate) table: Option<LitStr>,
    pub(crate) runtime: Option<Path>,
    /// Names of what could not be read; an unknown name may stand for any.
    unread: Vec<String>,
}

#[derive(Clone, Copy, Default, Eq, PartialEq)]
pub(crate) enum Guard {
    #[default]
    Verify,
    Savepoint,
}

/// What a duplicate's caller gets.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
pub(crate) enum Answer {
    #[default]
    Outcome,
    Replay,
    Batch,
}

/// What a second delivery does while the first is open.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
pub(crate) enum Busy {
    #[default]
    Wait,
    Fail,
}

/// `each = "event in events"`
#[derive(Clone)]
pub(crate) struct Each {
    /// One message, in the key.
    pub(crate) element: Ident,
    /// The parameter that holds all.
    pub(crate) list: Ident,
}

/// `was("old-scope")`, `was(scope = "old", key = "event.number")`
pub(crate) struct Was {
    pub(crate) scope: Option<LitStr>,
    /// Other parts than the key has now.
    pub(crate) key: Option<Vec<KeyPath>>,
    /// The word `was`.
    pub(crate) name: Span,
    /// The word `key` in it.
    pub(crate) key_name: Option<Span>,
    /// Nothing of it is refused.
    pub(crate) is_whole: bool,
}

/// A stretch of time, as it is written.
pub(crate) struct Period {
    pub(crate) seconds: u64,
    pub(crate) written: LitStr,
}

/// The arguments, with an example of each, which an error shows.
pub(crate) const EXAMPLES: [(&str, &str); 15] = [
    ("key", "key = \"event.id, channel\""),
    ("scope", "scope = \"orders.accept\""),
    ("was", "was(\"orders.old\")"),
    ("tx", "tx = transaction"),
    ("skip", "skip(mailer, config)"),
    ("replay", "replay"),
    ("fingerprint", "fingerprint = \"event.amount\""),
    ("retain", "retain = \"7 days\""),
    ("redelivery", "redelivery = \"4 days\""),
    ("busy", "busy = \"fail\""),
    ("each", "each = \"event in events\""),
    ("guard", "guard = \"savepoint\""),
    ("bind", "bind = claim"),
    ("table", "table = \"inbox.processed_messages\""),
    ("crate", "crate = my_company::idempotent_runtime"),
];

pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Args {
    let mut args = Args::default();
    let mut seen: Vec<String> = Vec::new();
    let mut pieces: Vec<Piece> = split(tokens);
    pieces.retain(|argument| !argument.tokens.is_empty());
    let bare = pieces
        .iter()
        .take_while(|piece| is_bare_part(&piece.tokens));
    let bare: Vec<TokenStream> = bare
        .map(|piece| piece.tokens.iter().cloned().collect())
        .collect();
    if let Some(first) = bare.first() {
        errors.push(diagnostics::bare_key(first, &bare));
        args.unread.push("key".to_owned());
    }
    for Piece { tokens, .. } in pieces.into_iter().skip(bare.len()) {
        let (name, value) = match name_and_value(tokens, seen.last()) {
            Ok(argument) => argument,
            Err(error) => {
                errors.push(error);
                args.unread.push(String::new());
                continue;
            }
        };
        let text = name.to_string();
        if !is_known(&text) {
            errors.push(diagnostics::unknown_argument(&name));
            args.unread.push(text);
        } else if seen.contains(&text) && text != "was" {
            errors.push(diagnostics::repeated_argument(&name));
            args.unread.push(text);
        } else {
            args.set(&name, value, errors);
            seen.push(text);
        }
    }
    if !seen.iter().any(|name| name == "key") && args.is_read("key") {
        errors.push(diagnostics::missing_key());
        args.unread.push("key".to_owned());
    }
    args
}

/// A part of a key that stands outside `key(…)`: `event.id`, or a name that is
/// like no argument's.
fn is_bare_part(argument: &[TokenTree]) -> bool {
    let Some(TokenTree::Ident(name)) = argument.first() else {
        return false;
    };
    match argument.get(1) {
        None => {
            let name = name.to_string();
            near(&name, EXAMPLES.iter().map(|(known, _)| *known)).is_none()
        }
        Some(TokenTree::Punct(punct)) => punct.as_char() == '.',
        Some(_) => false,
    }
}

fn is_known(name: &str) -> bool {
    EXAMPLES.iter().any(|(known, _)| *known == name)
}

impl Args {
    /// The key as it would be written with one more part.
    pub(crate) fn key_with(&self, part: &Ident) -> String {
        let parts = self.key.iter().map(|path| path.written.clone());
        let parts: Vec<String> = parts.chain([part.to_string()]).collect();
        let parts = parts.join(", ");
        if self.is_key_quoted {
            format!("key = {parts:?}")
        } else {
            format!("key({parts})")
        }
    }

    /// What a caller gets around the handler's value.
    pub(crate) fn answer(&self) -> Answer {
        match (&self.each, self.replay) {
            (Some(_), _) => Answer::Batch,
            (None, Some(_)) => Answer::Replay,
            (None, None) => Answer::Outcome,
        }
    }

    /// The names of arguments that speak of one message.
    pub(crate) fn of_one_message(&self) -> impl Iterator<Item = (&'static str, Span)> {
        [
            ("replay", self.replay),
            ("fingerprint", self.fingerprint_name),
            ("busy", self.busy_name),
            ("bind", self.bind.as_ref().map(Ident::span)),
            ("was", self.was.first().map(|was| was.name)),
        ]
        .into_iter()
        .filter_map(|(name, span)| Some((name, span?)))
    }

    /// Says whether nothing is missing from what the argument says: neither a
    /// piece of it, nor the whole under another name.
    pub(crate) fn is_read(&self, name: &str) -> bool {
        let may_be = |unread: &String| unread == name || !is_known(unread);
        !self.unread.iter().any(may_be)
    }

    fn set(&mut self, name: &Ident, value: Value, errors: &mut Errors) {
        let is_assigned = value.is_assigned();
        let result = match name.to_string().as_str() {
            "key" => value.key(name).and_then(|(key, mistakes)| {
                self.key = key;
                self.key_name = Some(name.span());
                self.is_key_quoted = is_assigned;
                mistakes.finish()
            }),
            "scope" => value.scope(name).map(|scope| self.scope = Some(scope)),
            "tx" => value.ident(name).map(|tx| self.tx = Some(tx)),
            "skip" => value.idents(name).map(|skip| self.skip = skip),
            "replay" => value.flag(name).map(|()| self.replay = Some(name.span())),
            "was" => value.was(name).and_then(|(was, mistakes)| {
                self.was.push(was);
                mistakes.finish()
            }),
            "each" => value.each(name).map(|each| self.each = Some(each)),
            "fingerprint" => value.key(name).and_then(|(fingerprint, mistakes)| {
                self.fingerprint = fingerprint;
                self.fingerprint_name = Some(name.span());
                mistakes.of_fingerprint().finish()
            }),
            "retain" => value.period(name).map(|period| self.retain = Some(period)),
            "redelivery" => value
                .period(name)
                .map(|period| self.redelivery = Some(period)),
            "busy" => value.busy(name).map(|busy| {
                self.busy = busy;
                self.busy_name = Some(name.span());
            }),
            "guard" => value.guard(name).map(|guard| self.guard = guard),
            "bind" => value.ident(name).map(|bind| self.bind = Some(bind)),
            "table" => value.table(name).map(|table| self.table = Some(table)),
            _ => value.path(name).map(|path| self.runtime = Some(path)),
        };
        if let Err(error) = result {
            errors.push(error);
            self.unread.push(name.to_string());
        }
    }
}

pub(crate) fn name_and_value(
    argument: Vec<TokenTree>,
    before: Option<&String>,
) -> syn::Result<(Ident, Value)> {
    let mut tokens = argument.into_iter();
    let name = match tokens.next() {
        Some(TokenTree::Ident(name)) => name,
        Some(TokenTree::Literal(string))
            if before.is_some_and(|name| name == "key") && string.to_string().starts_with('"') =>
        {
            return Err(diagnostics::second_string(string.span()));
        }
        other => {
            let span = other.map_or_else(Span::call_site, |other| other.span());
            return Err(diagnostics::argument_name(span));
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
                Some(extra) => return Err(diagnostics::missing_comma(extra.span())),
            }
        }
        Some(other) => return Err(diagnostics::argument_shape(&name, other.span())),
    };
    Ok((name, value))
}
