//! The text of SQL, as far as it takes to tell names from all else.

use super::Catalog;

/// A piece of a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Token<'s> {
    pub(crate) sort: Sort,
    /// As it is written.
    pub(crate) text: &'s str,
}

/// What a piece is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sort {
    /// A name, or a word of the language.
    Word,
    /// A name in quotes.
    Quoted,
    /// A string, with the letter before it that some have.
    Text,
    Number,
    /// One character of what is left.
    Symbol,
}

impl Token<'_> {
    /// Whether it is this word of the language, or this symbol.
    pub(crate) fn is(&self, word: &str) -> bool {
        matches!(self.sort, Sort::Word | Sort::Symbol) && self.text.eq_ignore_ascii_case(word)
    }

    pub(crate) fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    /// Whether it can be the name of this column.
    pub(crate) fn names<DB: Catalog>(&self, column: &str) -> bool {
        self.name().is_some_and(|name| same::<DB>(&name, column))
    }

    /// The name, without its quotes.
    pub(crate) fn name(&self) -> Option<String> {
        match self.sort {
            Sort::Word => Some(self.text.to_owned()),
            Sort::Quoted => {
                let quote = self.text.chars().next_back()?;
                let inside = self.text.get(1..self.text.len() - 1)?;
                Some(inside.replace(&format!("{quote}{quote}"), &quote.to_string()))
            }
            Sort::Text | Sort::Number | Sort::Symbol => None,
        }
    }
}

/// Whether two names are one column's.
pub(crate) fn same<DB: Catalog>(one: &str, other: &str) -> bool {
    if DB::FOLDS_NAMES {
        one.to_lowercase() == other.to_lowercase()
    } else {
        one == other
    }
}

/// Takes a text apart; comments are left out.
pub(crate) fn tokens<DB: Catalog>(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let comment = comment_length(rest);
        let (sort, length) = match first {
            _ if comment > 0 => (None, comment),
            '\'' => (Some(Sort::Text), quoted_length(rest, '\'', DB::ESCAPE)),
            '"' | '`' => (Some(Sort::Quoted), quoted_length(rest, first, None)),
            '[' if DB::HAS_BRACKETS => (Some(Sort::Quoted), quoted_length(rest, ']', None)),
            '0'..='9' => (
                Some(Sort::Number),
                length(rest, |c| c.is_alphanumeric() || c == '.'),
            ),
            _ if is_of_word(first) => {
                let word = length(rest, is_of_word);
                let after = rest.get(word..).unwrap_or_default();
                // A letter such as that of `E'…'`, or a character set.
                if after.starts_with('\'') {
                    (
                        Some(Sort::Text),
                        word + quoted_length(after, '\'', DB::ESCAPE),
                    )
                } else {
                    (Some(Sort::Word), word)
                }
            }
            _ => (Some(Sort::Symbol), first.len_utf8()),
        };
        let (text, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        tokens.extend(sort.map(|sort| Token { sort, text }));
        rest = after.trim_start();
    }
    tokens
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$' || !character.is_ascii()
}

fn length(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|character| !is_part(character))
        .unwrap_or(text.len())
}

/// How long a comment at the start is.
fn comment_length(text: &str) -> usize {
    let ends_after = |end: &str| text.find(end).map_or(text.len(), |at| at + end.len());
    if text.starts_with("--") {
        ends_after("\n")
    } else if text.starts_with("/*") {
        ends_after("*/")
    } else {
        0
    }
}

/// How long what stands in quotes at the start is: two quotes inside are one, and what
/// follows an escape is no quote.
fn quoted_length(text: &str, end: char, escape: Option<char>) -> usize {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if Some(character) == escape {
            characters.next();
        } else if character == end && characters.next_if(|(_, next)| *next == end).is_none() {
            return at + character.len_utf8();
        }
    }
    text.len()
}

/// What is in the parentheses at the start, and what follows them.
pub(crate) fn parenthesised<'t, 's>(
    tokens: &'t [Token<'s>],
) -> Option<(&'t [Token<'s>], &'t [Token<'s>])> {
    tokens.first().filter(|first| first.is("("))?;
    let mut depth = 0_u32;
    for (at, token) in tokens.iter().enumerate() {
        if token.is("(") {
            depth += 1;
        } else if token.is(")") {
            depth -= 1;
        }
        if depth == 0 {
            return Some((tokens.get(1..at)?, tokens.get(at + 1..)?));
        }
    }
    None
}

/// Tokens as a text again.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) fn joined(tokens: &[Token<'_>]) -> String {
    let texts: Vec<_> = tokens.iter().map(|token| token.text).collect();
    texts.join(" ")
}

/// Parts the tokens at those that are outside of parentheses and wanted.
pub(crate) fn split<'t, 's>(
    tokens: &'t [Token<'s>],
    is_wanted: impl Fn(&Token<'_>) -> bool,
) -> Vec<&'t [Token<'s>]> {
    let mut depth = 0_u32;
    let is_end = |token: &Token<'_>| {
        if token.is("(") {
            depth += 1;
        } else if token.is(")") {
            depth = depth.saturating_sub(1);
        }
        depth == 0 && is_wanted(token)
    };
    tokens.split(is_end).collect()
}

#[cfg(all(test, feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod tests {
    use sqlx::{MySql, Postgres, Sqlite};

    use super::*;

    fn told<DB: Catalog>(text: &str) -> Vec<(Sort, &str)> {
        let told = tokens::<DB>(text).into_iter();
        told.map(|token| (token.sort, token.text)).collect()
    }

    #[test]
    fn names_strings_and_comments_are_told_apart() {
        use Sort::{Number, Quoted, Symbol, Text, Word};
        assert_eq!(
            told::<Sqlite>(
                " größe_1>=[a]]b] /* \" */ || 'it''s'--'\n\"x\"\"y\"`z` x'0f' 1.5e3,-- end"
            ),
            [
                (Word, "größe_1"),
                (Symbol, ">"),
                (Symbol, "="),
                (Quoted, "[a]]b]"),
                (Symbol, "|"),
                (Symbol, "|"),
                (Text, "'it''s'"),
                (Quoted, "\"x\"\"y\""),
                (Quoted, "`z`"),
                (Text, "x'0f'"),
                (Number, "1.5e3"),
                (Symbol, ","),
            ]
        );
    }

    #[test]
    fn only_mysql_escapes_and_only_sqlite_has_brackets() {
        use Sort::{Symbol, Text, Word};
        let escaped = r"'a\' b'";
        assert_eq!(told::<MySql>(escaped), [(Text, escaped)]);
        assert_eq!(told::<Sqlite>(r"'a\' b"), [(Text, r"'a\'"), (Word, "b")]);
        assert_eq!(told::<Postgres>("[a"), [(Symbol, "["), (Word, "a")]);
    }

    #[test]
    fn what_does_not_end_ends_with_the_text() {
        for text in ["'a", "\"a", "[a", "/* a", "-- a", "`", "é'", "x'é"] {
            let all: String = told::<Sqlite>(text).iter().map(|(_, text)| *text).collect();
            assert!(all.is_empty() || all == text, "{text}");
        }
    }

    #[test]
    fn names_lose_their_quotes() {
        for (text, name) in [
            ("[a]", "a"),
            ("`a``b`", "a`b"),
            ("\"a\"\"\"", "a\""),
            ("A", "A"),
        ] {
            let token = tokens::<Sqlite>(text);
            assert_eq!(token.first().and_then(Token::name).as_deref(), Some(name));
        }
    }

    #[test]
    fn parentheses_are_kept_together() {
        let tokens = tokens::<Sqlite>("(a, (b, c)) d, ')', e");
        let (inside, after) = parenthesised(&tokens).unwrap();
        assert_eq!(split(inside, |token| token.is(",")).len(), 2);
        assert_eq!(split(after, |token| token.is(",")).len(), 3);
        assert!(parenthesised(after).is_none());
        assert!(parenthesised(inside.get(1..).unwrap()).is_none());
    }
}
