//! What an editor finds under the cursor: the tokens of the user, in their own
//! places, and nothing of ours in the same place.
//!
//! rust-analyzer looks for all tokens of the expansion that stand where the
//! cursor stands: those of ours would add their documentation to every hover,
//! and their definitions to every jump.

use std::ops::Range;

use proc_macro2::{TokenStream, TokenTree};

use super::expand;

const ARGS: &str =
    "key(msg.id, channel.kind(), stable(msg.sent + other)), scope = \"send\", bind = claim";

const ITEM: &str = "
    /// Sends it.
    pub async fn send<'a>(
        tx: &mut Transaction<'_, Postgres>,
        msg: &'a Msg,
        mut channel: Channel,
        other: u8,
    ) -> Result<u8, AppError> {
        let text = format!(\"{}\", msg.text);
        channel.send(&mut **tx, text, claim.key()).await?;
        Ok(other)
    }
";

/// A word of a person's or of ours, and the bytes that it stands at.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Word {
    text: String,
    place: Range<usize>,
}

fn words(tokens: TokenStream) -> Vec<Word> {
    let mut found = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => found.extend(words(group.stream())),
            token => found.push(Word {
                text: token.to_string(),
                place: place(&token),
            }),
        }
    }
    found
}

/// Places are unique to a source, as `bytes(17..20)`.
fn place(token: &TokenTree) -> Range<usize> {
    let text = format!("{:?}", token.span());
    let range = text
        .strip_prefix("bytes(")
        .and_then(|text| text.strip_suffix(')'));
    let (start, end) = range.and_then(|range| range.split_once("..")).unwrap();
    start.parse().unwrap()..end.parse().unwrap()
}

/// The words of the arguments, of the item, and of what becomes of them. Source
/// is parsed after a first one: what stands nowhere stands at 0.
fn expanded(args: &str, item: &str) -> [Vec<Word>; 3] {
    let _: TokenStream = "first".parse().unwrap();
    let args: TokenStream = args.parse().unwrap();
    let item: TokenStream = item.parse().unwrap();
    let expansion = expand(args.clone(), &item);
    [args, item, expansion].map(words)
}

#[test]
fn every_word_of_signature_and_body_keeps_its_place() {
    for args in [ARGS, "kye(msg.id)"] {
        let [_, item, expansion] = expanded(args, ITEM);
        // `mut channel` is rebound in the body.
        for word in item.iter().filter(|word| word.text != "mut") {
            assert!(expansion.contains(word), "{word:?} of the item is gone");
        }
    }
}

#[test]
fn every_word_of_the_key_keeps_its_place() {
    let [args, _, expansion] = expanded(ARGS, ITEM);
    let ours = ["key", "stable", "scope", "bind", "=", ","];
    let is_said = |word: &&Word| !ours.contains(&&*word.text);
    assert_eq!(args.iter().filter(is_said).count(), 13);
    for word in args.iter().filter(is_said) {
        assert!(expansion.contains(word), "{word:?} of the key is gone");
    }
}

#[test]
fn no_word_of_ours_stands_in_the_place_of_one_of_a_persons() {
    for args in [ARGS, "kye(msg.id)"] {
        let [args, item, expansion] = expanded(args, ITEM);
        // The word `key` stands for what writes the parts, and a type for what asks for its traits.
        let body = item.iter().skip_while(|word| word.text != "text");
        let in_key = args
            .iter()
            .filter(|word| !["key", "kye", "scope"].contains(&&*word.text));
        for word in body.chain(in_key) {
            let middle = usize::midpoint(word.place.start, word.place.end);
            let is_word = |found: &&Word| {
                found
                    .text
                    .starts_with(|letter: char| letter.is_alphanumeric())
            };
            for found in expansion
                .iter()
                .filter(|found| found.place.contains(&middle))
                .filter(is_word)
            {
                assert_eq!(found.text, word.text, "found {found:?} at {word:?}");
            }
        }
    }
}
