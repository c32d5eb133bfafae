//! What `SHOW CREATE TABLE` says, which is more than the catalog does.

use std::fmt::{self, Display, Formatter};

use sqlx::MySql;

use crate::store::catalog::sql::{Sort, Token, joined, parenthesised, split, tokens};

/// The statement, of which each column and each index has a line.
#[derive(Default)]
pub(super) struct Shown(String);

impl Shown {
    pub(super) const fn new(statement: String) -> Self {
        Self(statement)
    }

    /// What stands behind a column's name.
    pub(super) fn definition(&self, column: &str) -> Option<String> {
        self.0.lines().find_map(|line| {
            let line = line.trim();
            let name = *tokens::<MySql>(line)
                .first()
                .filter(|first| first.sort == Sort::Quoted)?;
            let is_it = name.name()? == column;
            let definition = line.strip_prefix(name.text)?.trim();
            let definition = definition.strip_suffix(',').unwrap_or(definition);
            is_it.then(|| definition.to_owned())
        })
    }

    /// The parts of a unique index, in order: columns and expressions.
    pub(super) fn parts(&self, index: &str) -> Vec<String> {
        let parts = self.0.lines().find_map(|line| {
            let tokens = tokens::<MySql>(line);
            let [unique, key, name, rest @ ..] = &*tokens else {
                return None;
            };
            let is_index = unique.is("unique") && key.is("key");
            let is_it = is_index && name.name()? == index;
            let (parts, _) = parenthesised(rest).filter(|_| is_it)?;
            let parts = split(parts, |token| token.is(","));
            Some(parts.into_iter().map(joined).collect())
        });
        parts.unwrap_or_default()
    }
}

/// A column's definition that has no more than these: all that can be said again.
pub(super) struct Definition {
    /// With its length, and the like.
    of_type: String,
    /// Character set and collation.
    charset: String,
    null: &'static str,
    default: String,
}

impl Definition {
    /// A definition with a comment, a CHECK or whatever else is none of these.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let tokens = tokens::<MySql>(text);
        // In some comments there are words that count.
        if text.contains("/*") {
            return None;
        }
        let (of_type, mut rest) = of_type(&tokens)?;
        let mut definition = Self {
            of_type,
            charset: String::new(),
            null: "",
            default: String::new(),
        };
        while let [word, after @ ..] = rest {
            rest = match after {
                [set, name, rest @ ..] if word.is("character") && set.is("set") => {
                    definition.charset = [" CHARACTER SET ", name.text].concat();
                    rest
                }
                [name, rest @ ..] if word.is("collate") => {
                    definition.charset = [&definition.charset, " COLLATE ", name.text].concat();
                    rest
                }
                [null, rest @ ..] if word.is("not") && null.is("null") => {
                    definition.null = " NOT NULL";
                    rest
                }
                rest if word.is("null") => {
                    definition.null = " NULL";
                    rest
                }
                after if word.is("default") => {
                    let (default, rest) = default(after)?;
                    definition.default = default;
                    rest
                }
                _ => return None,
            };
        }
        Some(definition)
    }

    pub(super) fn not_null(mut self) -> Self {
        self.null = " NOT NULL";
        if self.default.eq_ignore_ascii_case(" DEFAULT NULL") {
            self.default.clear();
        }
        self
    }

    pub(super) fn collated(mut self, collation: &str) -> Self {
        self.charset = format!(" COLLATE {collation}");
        self
    }
}

impl Display for Definition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            of_type,
            charset,
            null,
            default,
        } = self;
        write!(f, "{of_type}{charset}{null}{default}")
    }
}

fn of_type<'t, 's>(tokens: &'t [Token<'s>]) -> Option<(String, &'t [Token<'s>])> {
    let (name, mut rest) = tokens.split_first()?;
    let mut of_type = name.text.to_owned();
    if let Some((inside, after)) = parenthesised(rest) {
        let inside: Vec<_> = inside.iter().map(|token| token.text).collect();
        of_type = [&of_type, "(", &*inside.concat(), ")"].concat();
        rest = after;
    }
    while let [sign, after @ ..] = rest
        && sign.is_any(&["unsigned", "zerofill"])
    {
        of_type = [&of_type, " ", sign.text].concat();
        rest = after;
    }
    Some((of_type, rest))
}

/// A literal, or a function with a number at most.
fn default<'t, 's>(tokens: &'t [Token<'s>]) -> Option<(String, &'t [Token<'s>])> {
    let is_literal = |token: &Token<'_>| matches!(token.sort, Sort::Text | Sort::Number);
    let (length, rest) = match tokens {
        [minus, number, rest @ ..] if minus.is("-") && is_literal(number) => (2, rest),
        [literal, rest @ ..] if is_literal(literal) => (1, rest),
        [function, after @ ..] if function.sort == Sort::Word => match parenthesised(after) {
            None => (1, after),
            Some(([], rest)) => (3, rest),
            Some(([number], rest)) if number.sort == Sort::Number => (4, rest),
            Some(_) => return None,
        },
        _ => return None,
    };
    let texts: Vec<_> = tokens.iter().take(length).map(|token| token.text).collect();
    Some((format!(" DEFAULT {}", texts.concat()), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATEMENT: &str = "CREATE TABLE `n` (\n  \
        `event_id` varchar(40) NOT NULL,\n  \
        `say ``when``` enum('a','b,c') DEFAULT 'it''s',\n  \
        `channel` varchar(20) GENERATED ALWAYS AS (lower(`event_id`)) VIRTUAL,\n  \
        PRIMARY KEY (`event_id`),\n  \
        UNIQUE KEY `u` (`event_id`(8),(lower(`channel`)),((`a` + `b`)) DESC) USING BTREE,\n  \
        KEY `channel` (`channel`)\n\
        ) ENGINE=InnoDB";

    #[test]
    fn a_column_has_a_line() {
        let shown = Shown::new(STATEMENT.to_owned());
        let definition = |column| shown.definition(column);
        assert_eq!(
            definition("event_id").as_deref(),
            Some("varchar(40) NOT NULL")
        );
        let odd = definition("say `when`");
        assert_eq!(odd.as_deref(), Some("enum('a','b,c') DEFAULT 'it''s'"));
        assert_eq!(definition("u"), None);
    }

    #[test]
    fn an_index_of_mysql_8_has_expressions() {
        let shown = Shown::new(STATEMENT.to_owned());
        let parts = [
            "`event_id` ( 8 )",
            "( lower ( `channel` ) )",
            "( ( `a` + `b` ) ) DESC",
        ];
        assert_eq!(shown.parts("u"), parts);
        assert!(shown.parts("channel").is_empty());
    }

    #[test]
    fn a_definition_that_is_understood_is_said_again() {
        for text in [
            "varchar(20)",
            "int(11) unsigned zerofill NOT NULL DEFAULT 7",
            "decimal(10,2) NOT NULL DEFAULT -1.5",
            "enum('a','b') CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT 'it''s'",
            "timestamp(6) NULL DEFAULT current_timestamp(6)",
            "datetime DEFAULT CURRENT_TIMESTAMP",
            "bit(1) DEFAULT b'0'",
        ] {
            let definition = Definition::parse(text).expect(text);
            assert_eq!(definition.to_string(), text);
        }
    }

    #[test]
    fn one_that_is_not_is_none() {
        for text in [
            "",
            "varchar(20) DEFAULT NULL COMMENT 'by which'",
            "varchar(20) DEFAULT NULL CHECK (`channel` <> '')",
            "varchar(20) GENERATED ALWAYS AS (lower(`event_id`)) VIRTUAL",
            "varchar(20) /*M!100301 COMPRESSED*/ DEFAULT NULL",
            "varchar(20) DEFAULT NULL /*!80023 INVISIBLE */",
            "varchar(20) INVISIBLE DEFAULT NULL",
            "int(11) NOT NULL AUTO_INCREMENT",
            "timestamp NULL DEFAULT NULL ON UPDATE current_timestamp()",
            "varchar(36) DEFAULT (uuid())",
            "varchar(36) DEFAULT concat('a','b')",
            "varchar(36) DEFAULT",
        ] {
            assert!(Definition::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_definition_is_changed_in_one_way() {
        let definition = || Definition::parse("varchar(9) COLLATE utf8mb4_general_ci DEFAULT NULL");
        let not_null = definition().map(Definition::not_null).unwrap();
        assert_eq!(
            not_null.to_string(),
            "varchar(9) COLLATE utf8mb4_general_ci NOT NULL"
        );
        let collated = definition().unwrap().collated("utf8mb4_bin");
        assert_eq!(
            collated.to_string(),
            "varchar(9) COLLATE utf8mb4_bin DEFAULT NULL"
        );
    }
}
