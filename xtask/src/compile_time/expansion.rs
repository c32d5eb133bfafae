//! How much code a crate is after its macros were expanded.

/// The size of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Expansion {
    /// Identifiers and keywords, numbers, strings and characters, and each single sign; no
    /// comments, and no documentation.
    pub(super) tokens: usize,
    pub(super) bytes: usize,
}

impl Expansion {
    pub(super) fn of(source: &str) -> Self {
        let (mut rest, mut tokens) = (source.trim_start(), 0);
        while let Some(first) = rest.chars().next() {
            let length = comment(rest).unwrap_or_else(|| {
                tokens += 1;
                token(rest).unwrap_or(first.len_utf8())
            });
            rest = rest.get(length..).unwrap_or_default().trim_start();
        }
        Self {
            tokens,
            bytes: source.len(),
        }
    }
}

/// The length of the comment that a text begins with.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(until(text, "\n"));
    }
    text.starts_with("/*").then(|| until(text, "*/"))
}

/// The length of the token that a text begins with, unless it is a single sign.
fn token(text: &str) -> Option<usize> {
    let word = word(text);
    let (prefix, behind) = text.split_at_checked(word)?;
    let literal = match prefix {
        "r" | "br" | "cr" => raw_string(behind),
        "" | "b" | "c" => quoted(behind),
        _ => None,
    };
    let length = word + literal.unwrap_or(0);
    (length > 0).then_some(length)
}

/// The length of an identifier or number; `1.5` is three tokens here.
fn word(text: &str) -> usize {
    let is_other = |character: char| !character.is_alphanumeric() && character != '_';
    text.find(is_other).unwrap_or(text.len())
}

/// The length of a string that knows no escapes, behind its `r`.
fn raw_string(text: &str) -> Option<usize> {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let inner = text.get(hashes..)?.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(hashes + 1 + until(inner, &end))
}

/// The length of a string, or of a character; the quote of a lifetime is a single sign.
fn quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|first| "\"'".contains(*first))?;
    let mut characters = text.char_indices().skip(1);
    let mut inside = 0;
    while let Some((at, character)) = characters.next() {
        match character {
            _ if character == quote => return Some(at + 1),
            '\\' => {
                characters.next();
            }
            _ if quote == '\'' && inside > 0 && !text.starts_with("'\\") => return None,
            _ => {}
        }
        inside += 1;
    }
    None
}

fn until(text: &str, end: &str) -> usize {
    text.find(end).map_or(text.len(), |at| at + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(source: &str) -> usize {
        Expansion::of(source).tokens
    }

    #[test]
    fn words_numbers_and_each_sign_are_tokens() {
        assert_eq!(tokens("pub async fn handler_17(tx: &mut T) -> u64 {}"), 16);
        assert_eq!(tokens("a::b + 1_000u64"), 6);
        assert_eq!(tokens(""), 0);
    }

    #[test]
    fn a_string_is_one_token_whatever_is_in_it() {
        for string in [
            r#""a b, c""#,
            r#""it is \"quoted\" // not a comment""#,
            r##"r#"raw "text" of 'words'"#"##,
            r#"r"\""#,
            r#"b"bytes""#,
            r#"c"text""#,
            r#""\\""#,
            "\"über\"",
        ] {
            assert_eq!(tokens(string), 1, "{string}");
            assert_eq!(tokens(&format!("f({string}, x)")), 6, "{string}");
        }
    }

    #[test]
    fn a_character_is_one_token_and_a_lifetime_two() {
        for character in ["'a'", "'\\''", "'\\u{1F600}'", "b'x'", "'ü'", "'\"'"] {
            assert_eq!(tokens(character), 1, "{character}");
        }
        assert_eq!(tokens("Transaction<'_, Sqlite>"), 7);
        assert_eq!(tokens("<'a, 'b>"), 7);
    }

    #[test]
    fn comments_are_no_tokens_but_have_bytes() {
        let source = "/// documented\nfn f() {} // \"end\n/* a\nb */ fn g() {}\n";
        let wanted = Expansion {
            tokens: 12,
            bytes: source.len(),
        };
        assert_eq!(Expansion::of(source), wanted);
    }
}
