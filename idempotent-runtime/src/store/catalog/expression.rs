//! What an expression says of a column.

use super::Catalog;
use super::sql::{Sort, Token, parenthesised, same, split, tokens};

/// An expression of an index, its WHERE, or what makes a generated column.
#[derive(Debug)]
pub(crate) struct Expression(String);

/// Words that go on with the name of a type.
const OF_TYPES: [&str; 5] = ["varying", "precision", "with", "without", "time"];

/// Operators that bind less than `AND`, and words between which it is no conjunction.
const LOOSE: [&str; 5] = ["or", "xor", "between", "case", "when"];

impl Expression {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether the column occurs in it.
    pub(crate) fn mentions<DB: Catalog>(&self, column: &str) -> bool {
        let tokens = without_types(&tokens::<DB>(&self.0));
        tokens.iter().enumerate().any(|(at, token)| {
            let is_function = tokens.get(at + 1).is_some_and(|next| next.is("("));
            token.names::<DB>(column) && !is_function
        })
    }

    /// Whether it can hold for one value of the column only.
    pub(crate) fn pins<DB: Catalog>(&self, column: &str) -> bool {
        let tokens = tokens::<DB>(&self.0);
        conjuncts(&tokens).iter().any(|part| {
            is_null_test::<DB>(part, column)
                || sides(part).is_some_and(|(one, other)| {
                    (is_column::<DB>(one, column) && is_constant(other))
                        || (is_column::<DB>(other, column) && is_constant(one))
                })
        })
    }

    /// Whether it is no more than `column IS NULL`.
    pub(crate) fn is_null_test_of<DB: Catalog>(&self, column: &str) -> bool {
        is_null_test::<DB>(bare(&tokens::<DB>(&self.0)), column)
    }
}

/// Leaves out what follows `::`, which is the name of a type.
fn without_types<'s>(all: &[Token<'s>]) -> Vec<Token<'s>> {
    let mut kept = Vec::with_capacity(all.len());
    let mut rest = all;
    while let [token, after @ ..] = rest {
        rest = after;
        match after {
            [second, _type, more @ ..] if token.is(":") && second.is(":") => {
                let length = more
                    .iter()
                    .take_while(|token| token.is_any(&OF_TYPES))
                    .count();
                rest = more.get(length..).unwrap_or_default();
            }
            _ => kept.push(*token),
        }
    }
    kept
}

/// The conditions that must all hold.
fn conjuncts<'t, 's>(tokens: &'t [Token<'s>]) -> Vec<&'t [Token<'s>]> {
    let tokens = bare(tokens);
    let is_loose = split(tokens, |token| token.is_any(&LOOSE)).len() > 1;
    let parts = split(tokens, |token| token.is("and"));
    if is_loose || parts.len() == 1 {
        return vec![tokens];
    }
    parts.into_iter().flat_map(conjuncts).collect()
}

/// Without parentheses around the whole.
fn bare<'t, 's>(tokens: &'t [Token<'s>]) -> &'t [Token<'s>] {
    match parenthesised(tokens) {
        Some((inside, [])) => bare(inside),
        _ => tokens,
    }
}

fn is_null_test<DB: Catalog>(tokens: &[Token<'_>], column: &str) -> bool {
    match tokens {
        [of @ .., is, null] if is.is("is") && null.is("null") => is_column::<DB>(of, column),
        [of @ .., is_null] if is_null.is("isnull") => is_column::<DB>(of, column),
        _ => false,
    }
}

/// What stands on both sides of `=`, or `==`.
fn sides<'t, 's>(tokens: &'t [Token<'s>]) -> Option<(&'t [Token<'s>], &'t [Token<'s>])> {
    match split(tokens, |token| token.is("="))[..] {
        [one, other] | [one, [], other] => Some((one, other)),
        _ => None,
    }
}

/// A cast to text tells all values apart that the column tells apart.
fn is_column<DB: Catalog>(tokens: &[Token<'_>], column: &str) -> bool {
    match bare(tokens) {
        [token] => token.name().is_some_and(|name| same::<DB>(&name, column)),
        [of @ .., one, two, text] if one.is(":") && two.is(":") && text.is("text") => {
            is_column::<DB>(of, column)
        }
        _ => false,
    }
}

fn is_constant(tokens: &[Token<'_>]) -> bool {
    match bare(tokens) {
        [token] => {
            matches!(token.sort, Sort::Text | Sort::Number) || token.is_any(&["true", "false"])
        }
        [sign, number] if sign.is_any(&["-", "+"]) => number.sort == Sort::Number,
        all => match split(all, |token| token.is(":"))[..] {
            [of, [], the_type] => is_constant(of) && is_type(the_type),
            _ => false,
        },
    }
}

fn is_type(tokens: &[Token<'_>]) -> bool {
    tokens.iter().all(|token| {
        matches!(token.sort, Sort::Word | Sort::Quoted | Sort::Number)
            || token.is_any(&[".", ",", "(", ")"])
    })
}

#[cfg(all(test, feature = "postgres", feature = "sqlite"))]
mod tests {
    use sqlx::{Postgres, Sqlite};

    use super::*;

    #[test]
    fn whole_names_are_mentioned() {
        for (text, mentions) in [
            ("channel", true),
            ("lower(Channel)", true),
            ("[channel] || 'x'", true),
            ("(`channel`)", true),
            ("channel_state = 1", false),
            ("note <> 'channel'", false),
            ("note /* channel */ = 1 -- channel", false),
            ("channel(note)", false),
        ] {
            assert_eq!(
                Expression::new(text).mentions::<Sqlite>("channel"),
                mentions,
                "{text}"
            );
        }
    }

    #[test]
    fn a_type_is_not_a_column() {
        let text =
            "((event_id)::text || (CASE WHEN a THEN 'x'::text ELSE b END)::character varying(9))";
        let mentions = |column| Expression::new(text).mentions::<Postgres>(column);
        assert!(mentions("event_id") && mentions("a") && mentions("b"));
        assert!(!mentions("text") && !mentions("character") && !mentions("varying"));
        assert!(!Expression::new("channel").mentions::<Postgres>("Channel"));
    }

    #[test]
    fn one_value_is_pinned() {
        for text in [
            "channel = 'SMS'",
            "('SMS' = (channel))",
            "((channel)::text = 'SMS'::text)",
            "(((account > 0) AND ((channel)::text = 'SMS'::character varying(9))))",
            "account > 0 and (note is null and channel = -1)",
            "channel IS NULL",
            "(account OR note) AND channel ISNULL",
            "channel = ('7'::bigint)",
            "channel = true",
            "channel == E'\\\\'",
        ] {
            assert!(Expression::new(text).pins::<Postgres>("channel"), "{text}");
        }
    }

    #[test]
    fn what_may_hold_for_more_is_not() {
        for text in [
            "channel IS NOT NULL",
            "channel IN ('SMS')",
            "channel = 'SMS' OR account = 1",
            "account = 1 AND channel = 'SMS' OR account = 2",
            "(channel = 'SMS' OR account = 1) AND note = 1",
            "NOT channel = 'SMS'",
            "NOT (channel = 'SMS')",
            "channel >= 'SMS'",
            "channel <> 'SMS'",
            "channel = note",
            "lower(channel) = 'sms'",
            "(channel)::integer = 7",
            "channel = lower('SMS')",
            "channel = 'SMS' COLLATE nocase",
            "channel = 'SMS' = false",
            "account BETWEEN 0 AND channel = 1",
            "CASE WHEN note AND channel = 'SMS' AND account THEN false ELSE true END",
            "other = 'SMS'",
            "(channel = ANY (ARRAY['EMAIL'::text, 'PUSH'::text]))",
            "channel = NULL",
            "",
        ] {
            assert!(!Expression::new(text).pins::<Postgres>("channel"), "{text}");
        }
    }

    #[test]
    fn a_test_for_null_is_nothing_else() {
        let is_test = |text| Expression::new(text).is_null_test_of::<Postgres>("channel");
        assert!(is_test("(channel IS NULL)") && is_test("channel ISNULL"));
        assert!(!is_test("channel IS NOT NULL") && !is_test("channel IS NULL AND note"));
    }
}
