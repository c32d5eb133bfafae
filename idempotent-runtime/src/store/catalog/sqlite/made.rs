//! What the statement says that made a table or an index: the pragmas tell less.

use sqlx::Sqlite;

use crate::store::catalog::sql::{Sort, Token, joined, parenthesised, same, split, tokens};
use crate::store::catalog::{Expression, Flaw};

/// A statement.
pub(super) struct Made<'s>(Vec<Token<'s>>);

/// A unique constraint of a table that does not refuse.
pub(super) struct Conflict {
    columns: Vec<String>,
    pub(super) flaw: Flaw,
}

impl Conflict {
    pub(super) fn is_of(&self, columns: &[&str]) -> bool {
        self.columns.len() == columns.len()
            && self
                .columns
                .iter()
                .zip(columns)
                .all(|(one, other)| same::<Sqlite>(one, other))
    }
}

impl<'s> Made<'s> {
    pub(super) fn by(statement: &'s str) -> Self {
        Self(tokens::<Sqlite>(statement))
    }

    /// What is in the first parentheses, part by part, and what follows.
    fn parts(&self) -> (Vec<&[Token<'s>]>, &[Token<'s>]) {
        let start = self.0.iter().position(|token| token.is("("));
        let tokens = start.and_then(|start| self.0.get(start..));
        tokens.and_then(parenthesised).map_or_else(
            || (Vec::new(), &[][..]),
            |(parts, rest)| (split(parts, |token| token.is(",")), rest),
        )
    }

    /// Of an index: its parts, in order, and its WHERE.
    pub(super) fn index(&self) -> (Vec<Expression>, Option<Expression>) {
        let (parts, rest) = self.parts();
        let filter = match rest {
            [first, filter @ ..] if first.is("where") => Some(expression(filter)),
            _ => None,
        };
        (parts.into_iter().map(expression).collect(), filter)
    }

    /// Of a table: what makes a generated column.
    pub(super) fn generated(&self, column: &str) -> Option<Expression> {
        let definition = self.definition(column)?;
        let at = position(definition, "as")?;
        let (inside, _) = parenthesised(definition.get(at + 1..)?)?;
        Some(expression(inside))
    }

    /// Of a table: whether a column is declared to compare as bytes.
    pub(super) fn compares_bytes(&self, column: &str) -> bool {
        let collation = self.definition(column).and_then(|definition| {
            let at = position(definition, "collate")?;
            definition.get(at + 1)?.name()
        });
        collation.is_none_or(|name| name.eq_ignore_ascii_case("binary"))
    }

    fn definition(&self, column: &str) -> Option<&[Token<'s>]> {
        let (parts, _) = self.parts();
        parts.into_iter().find(|part| {
            let first = part.first();
            first.is_some_and(|first| first.names::<Sqlite>(column) && !is_constraint(first))
        })
    }

    /// Of a table: its constraints that do not refuse. There may be no comma between two.
    pub(super) fn conflicts(&self) -> Vec<Conflict> {
        let (parts, _) = self.parts();
        parts.into_iter().flat_map(conflicts).collect()
    }
}

fn conflicts(part: &[Token<'_>]) -> Vec<Conflict> {
    let column = part.first().filter(|first| !is_constraint(first));
    let mut conflicts = Vec::new();
    let mut rest = part;
    while let [first, after @ ..] = rest {
        rest = parenthesised(rest).map_or(after, |(_, after)| after);
        let after = match after {
            after if first.is("unique") => after,
            [key, after @ ..] if first.is("primary") && key.is("key") => after,
            _ => continue,
        };
        let (columns, after) = match parenthesised(after) {
            Some((columns, after)) => (names(columns), after),
            None => (column.and_then(Token::name).into_iter().collect(), after),
        };
        if let Some(flaw) = flaw(after) {
            conflicts.push(Conflict { columns, flaw });
        }
    }
    conflicts
}

fn flaw(after: &[Token<'_>]) -> Option<Flaw> {
    let after = match after {
        [order, after @ ..] if order.is_any(&["asc", "desc"]) => after,
        after => after,
    };
    let [on, conflict, action, ..] = after else {
        return None;
    };
    let is_action = |word: &str| on.is("on") && conflict.is("conflict") && action.is(word);
    if is_action("ignore") {
        Some(Flaw::Ignores)
    } else {
        is_action("replace").then_some(Flaw::Replaces)
    }
}

fn names(columns: &[Token<'_>]) -> Vec<String> {
    let columns = split(columns, |token| token.is(","));
    columns
        .iter()
        .filter_map(|column| column.first()?.name())
        .collect()
}

/// Where a word is that stands in no parentheses.
fn position(tokens: &[Token<'_>], word: &str) -> Option<usize> {
    let before = *split(tokens, |token| token.is(word)).first()?;
    (before.len() < tokens.len()).then_some(before.len())
}

fn is_constraint(first: &Token<'_>) -> bool {
    const WORDS: [&str; 5] = ["constraint", "primary", "unique", "check", "foreign"];
    first.sort == Sort::Word && first.is_any(&WORDS)
}

fn expression(tokens: &[Token<'_>]) -> Expression {
    Expression::new(joined(tokens))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "CREATE TABLE \"odd (name\" (\n\
        event_id varchar(20) CONSTRAINT u UNIQUE ON CONFLICT IGNORE NOT NULL, -- UNIQUE ON CONFLICT REPLACE\n\
        [unique] int PRIMARY KEY DESC ON CONFLICT REPLACE CHECK ([unique] <> ' UNIQUE ON CONFLICT IGNORE'),\n\
        once text COLLATE NoCase GENERATED ALWAYS AS (lower(event_id, ',')) STORED, twice AS (once||1),\n\
        plain text COLLATE binary NOT NULL ON CONFLICT IGNORE UNIQUE,\n\
        CHECK (once <> ''), UNIQUE (event_id COLLATE NOCASE, \"plain\" DESC) ON CONFLICT IGNORE\n\
        UNIQUE (plain) ON CONFLICT FAIL CONSTRAINT v UNIQUE (plain, once) ON CONFLICT REPLACE\n\
        ) STRICT";

    #[test]
    fn constraints_that_do_not_refuse_are_found() {
        let conflicts = Made::by(TABLE).conflicts();
        let told: Vec<_> = conflicts
            .iter()
            .map(|conflict| (conflict.columns.join(" "), conflict.flaw))
            .collect();
        assert_eq!(
            told,
            [
                ("event_id".to_owned(), Flaw::Ignores),
                ("unique".to_owned(), Flaw::Replaces),
                ("event_id plain".to_owned(), Flaw::Ignores),
                ("plain once".to_owned(), Flaw::Replaces),
            ]
        );
    }

    #[test]
    fn a_column_is_what_its_definition_says() {
        let table = Made::by(TABLE);
        let generated = |column| table.generated(column);
        assert!(generated("once").unwrap().mentions::<Sqlite>("event_id"));
        assert!(generated("TWICE").unwrap().mentions::<Sqlite>("once"));
        assert!(generated("plain").is_none() && generated("none").is_none());
        assert!(!table.compares_bytes("Once"));
        assert!(table.compares_bytes("plain") && table.compares_bytes("event_id"));
    }

    #[test]
    fn an_index_is_its_parts_and_its_where() {
        let index = "CREATE UNIQUE INDEX IF NOT EXISTS x.\"u (\" ON t (a, lower(b || ','), c DESC) WHERE d IS NULL";
        let (parts, filter) = Made::by(index).index();
        assert_eq!(parts.len(), 3);
        assert!(parts.get(1).unwrap().mentions::<Sqlite>("b"));
        assert!(filter.unwrap().is_null_test_of::<Sqlite>("d"));
        assert!(Made::by("CREATE INDEX u ON t (a)").index().1.is_none());
        assert!(Made::by("").index().0.is_empty());
    }
}
