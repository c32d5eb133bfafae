//! How mistakes are collected and worded, in the attribute and the derive.

use std::fmt::Display;

use proc_macro2::Span;
use quote::ToTokens;
use syn::Error;

/// Collects mistakes, so that all are reported at once.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn push(&mut self, error: Error) {
        self.0 = Some(std::mem::take(self).and(error));
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// All mistakes so far, and one more.
    pub(crate) fn and(self, error: Error) -> Error {
        match self.0 {
            None => error,
            Some(mut errors) => {
                errors.combine(error);
                errors
            }
        }
    }

    /// What is said of the key, said of the fingerprint.
    pub(crate) fn of_fingerprint(self) -> Self {
        let Some(errors) = self.0 else {
            return self;
        };
        let mut said = Self::default();
        for error in errors {
            let mut text = error.to_string();
            for (of_key, of_fingerprint) in FINGERPRINT {
                text = text.replace(of_key, of_fingerprint);
            }
            said.push(Error::new(error.span(), text));
        }
        said
    }

    /// Ends a stage: nothing that is reported later is the consequence of
    /// something reported so far.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.0.map_or(Ok(()), Err)
    }
}

/// The same part in a fingerprint does other harm.
const FINGERPRINT: [(&str, &str); 11] = [
    (
        "name the id that the message was given by its producer, for instance `event.id`",
        "name a field that the producer sets, for instance `event.amount`",
    ),
    ("in the key", "in the fingerprint"),
    ("for the key's", "for the fingerprint's"),
    ("part of the key", "part of the fingerprint"),
    ("outside the key", "outside the fingerprint"),
    ("`key(", "`fingerprint("),
    ("`key = ", "`fingerprint = "),
    ("the key is too long", "the fingerprint is too long"),
    (
        "so that no duplicate is found",
        "so that every redelivery would be refused",
    ),
    ("and would run again", "and would be refused"),
    ("would be skipped", "would count as equal"),
];

/// First line: the fact. Second: what to write.
pub(crate) fn message(span: Span, fact: impl Display, help: impl Display) -> Error {
    Error::new(span, format!("{fact}\nhelp: {help}"))
}

/// The same, where the place is more than one token.
pub(crate) fn spanned(tokens: impl ToTokens, fact: impl Display, help: impl Display) -> Error {
    Error::new_spanned(tokens, format!("{fact}\nhelp: {help}"))
}

/// `a`, `b`, `c`, each in back-ticks.
pub(crate) fn list<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The known name that is nearest to the written one, if any is near: one that
/// it begins, or one that a few letters tell from it.
pub(crate) fn near<'n>(written: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let length = written.chars().count();
    let allowed = length.div_ceil(4).min(3).min(length.saturating_sub(1));
    let away = |name: &str| {
        let is_begun = length > 1 && name.starts_with(written);
        if is_begun { 1 } else { distance(written, name) }
    };
    known
        .map(|name| (away(name), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many letters are added, removed, replaced or swapped with their
/// neighbour (optimal string alignment).
fn distance(written: &str, known: &str) -> usize {
    let known: Vec<char> = known.chars().collect();
    let (mut before, mut last): (Vec<usize>, Vec<usize>) =
        (Vec::new(), (0..=known.len()).collect());
    let mut previous = None;
    for (row, letter) in written.chars().enumerate() {
        let mut current = vec![row + 1];
        let mut known_previous = None;
        for (column, &other) in known.iter().enumerate() {
            let at =
                |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX - 1);
            let mut best = at(&last, column) + usize::from(letter != other);
            best = best
                .min(at(&last, column + 1) + 1)
                .min(at(&current, column) + 1);
            if column > 0 && previous == Some(other) && known_previous == Some(letter) {
                best = best.min(at(&before, column - 1) + 1);
            }
            current.push(best);
            known_previous = Some(other);
        }
        previous = Some(letter);
        before = std::mem::replace(&mut last, current);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{distance, near};

    #[test]
    fn distances() {
        for (written, known, expected) in [
            ("key", "key", 0),
            ("kye", "key", 1),
            ("mgs", "msg", 1),
            ("", "key", 3),
            ("scop", "scope", 1),
            ("x", "scope", 5),
        ] {
            assert_eq!(distance(written, known), expected, "{written} {known}");
        }
    }

    #[test]
    fn only_near_names_are_suggested() {
        assert_eq!(near("mgs", ["tx", "msg"].into_iter()), Some("msg"));
        assert_eq!(near("evnet", ["tx", "event"].into_iter()), Some("event"));
        assert_eq!(near("order", ["tx", "msg"].into_iter()), None);
        assert_eq!(
            near("chan", ["msg", "channel"].into_iter()),
            Some("channel")
        );
        assert_eq!(near("c", ["msg", "channel"].into_iter()), None);
        assert_eq!(near("m", ["tx", "msg"].into_iter()), None);
    }
}
