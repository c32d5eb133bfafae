//! The request header `Idempotency-Key`, as in draft-ietf-httpapi-idempotency-key-header-06.
//!
//! Section 2.1: "Idempotency-Key is an Item Structured Header. Its value MUST be a String", as in
//! `"8e03978e-40d5-43e8-bc93-6894a57f9324"`, with the quotes. Many clients leave them out: that is
//! taken for the same key. Anything else is refused, and so is a second header: an item is one value.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

use axum::http::HeaderMap;
use idempotent_runtime::KeyPart;

/// What the client calls its request: 1 to [`LONGEST`](Self::LONGEST) characters of printable ASCII.
#[derive(Clone, Debug, Eq, KeyPart, PartialEq)]
pub struct IdempotencyKey(String);

/// Why a request has no key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refused {
    /// The header is not there.
    Missing,
    /// It is there, and no key.
    Malformed(&'static str),
}

impl IdempotencyKey {
    /// The header's name.
    pub const HEADER: &str = "idempotency-key";

    /// How long a key may be. "Establish a fixed format for the idempotency key and publish the key's
    /// specification" (Security Considerations).
    pub const LONGEST: usize = 255;

    /// Finds the key of a request.
    ///
    /// # Errors
    ///
    /// There is none, or more than one, or something else.
    pub fn of(headers: &HeaderMap) -> Result<Self, Refused> {
        let mut values = headers.get_all(Self::HEADER).iter();
        let value = values.next().ok_or(Refused::Missing)?;
        if values.next().is_some() {
            return Err(Refused::Malformed("there is more than one"));
        }
        Self::parse(value.as_bytes())
    }

    fn parse(value: &[u8]) -> Result<Self, Refused> {
        // HTTP allows tabs around a value, structured fields blanks only: so much the better.
        let key = match value.trim_ascii() {
            [b'"', quoted @ ..] => unquote(quoted)?,
            bare => taken_as_is(bare)?,
        };
        match key.len() {
            0 => Err(Refused::Malformed("it is empty")),
            1..=Self::LONGEST => Ok(Self(key)),
            _ => Err(Refused::Malformed("it is longer than 255 characters")),
        }
    }
}

/// Reads the rest of an `sf-string` (RFC 9651, section 3.3.3): printable ASCII, in which `\` stands
/// before `"` and `\` and nothing else. The draft gives the item no parameters.
fn unquote(value: &[u8]) -> Result<String, Refused> {
    let mut key = String::with_capacity(value.len());
    let mut bytes = value.iter();
    loop {
        match bytes.next() {
            Some(b'\\') => match bytes.next() {
                Some(&byte @ (b'"' | b'\\')) => key.push(char::from(byte)),
                _ => return Err(Refused::Malformed("a `\\` in it escapes nothing")),
            },
            Some(b'"') => break,
            Some(&byte @ b' '..=b'~') => key.push(char::from(byte)),
            Some(_) => return Err(Refused::Malformed("it is not printable ASCII")),
            None => return Err(Refused::Malformed("its closing quote is missing")),
        }
    }
    if bytes.as_slice().is_empty() {
        Ok(key)
    } else {
        Err(Refused::Malformed("something follows its closing quote"))
    }
}

/// A key without quotes: what a UUID, a ULID, base64 or a name of one's own is made of.
fn taken_as_is(value: &[u8]) -> Result<String, Refused> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:/+=".contains(byte);
    if value.iter().all(is_plain) {
        Ok(value.iter().copied().map(char::from).collect())
    } else {
        Err(Refused::Malformed(
            "without quotes it is made of letters, digits and `-._~:/+=`",
        ))
    }
}

impl Display for Refused {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("this operation needs the header `Idempotency-Key`"),
            Self::Malformed(fact) => write!(f, "`Idempotency-Key` is no key: {fact}"),
        }
    }
}

impl Error for Refused {}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const UUID: &str = "8e03978e-40d5-43e8-bc93-6894a57f9324";

    fn parse(value: &str) -> Result<String, Refused> {
        IdempotencyKey::parse(value.as_bytes()).map(|key| key.0)
    }

    #[test]
    fn the_example_of_the_draft_and_its_bare_form_are_one_key() {
        assert_eq!(parse(&format!("\"{UUID}\"")).as_deref(), Ok(UUID));
        assert_eq!(parse(UUID).as_deref(), Ok(UUID));
        assert_eq!(parse(&format!("  \"{UUID}\" ")).as_deref(), Ok(UUID));
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(parse(r#""a\"b\\c d;e,f""#).as_deref(), Ok(r#"a"b\c d;e,f"#));
    }

    #[test]
    fn anything_else_is_refused() {
        for value in [
            "",
            "\"\"",
            "\"",
            "\"abc",
            "abc\"",
            r#""a\b""#,
            r#""abc\""#,
            "\"a\tb\"",
            "\"caf\u{e9}\"",
            "caf\u{e9}",
            "\"abc\";v=1",
            "\"abc\", \"def\"",
            "abc, def",
            "a b",
            "(abc)",
            "?1",
        ] {
            assert!(parse(value).is_err(), "{value:?}");
        }
    }

    #[test]
    fn the_length_is_bounded() {
        let longest = "k".repeat(IdempotencyKey::LONGEST);
        assert_eq!(parse(&longest).as_ref(), Ok(&longest));
        assert_eq!(parse(&format!("\"{longest}\"")).as_ref(), Ok(&longest));
        assert!(parse(&format!("{longest}k")).is_err());
        assert!(parse(&format!("\"{longest}k\"")).is_err());
    }

    #[test]
    fn one_header_is_needed_and_no_more() {
        let mut headers = HeaderMap::new();
        assert_eq!(IdempotencyKey::of(&headers), Err(Refused::Missing));
        headers.append(IdempotencyKey::HEADER, HeaderValue::from_static("one"));
        assert_eq!(
            IdempotencyKey::of(&headers),
            Ok(IdempotencyKey("one".to_owned()))
        );
        headers.append(IdempotencyKey::HEADER, HeaderValue::from_static("two"));
        assert!(matches!(
            IdempotencyKey::of(&headers),
            Err(Refused::Malformed(_))
        ));
    }
}
