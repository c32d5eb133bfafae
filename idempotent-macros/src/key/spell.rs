//! How a part is named: in messages, and in the default scope.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;

/// Tokens as a person writes them in a key: `msg.id`, `f(a, b)`.
pub(crate) fn spelled(tokens: impl ToTokens) -> String {
    let mut text = String::new();
    spell(tokens.into_token_stream(), &mut text);
    text
}

fn spell(tokens: TokenStream, text: &mut String) {
    for token in tokens {
        let TokenTree::Group(group) = token else {
            let token = token.to_string();
            let is_word = |letter: char| letter.is_alphanumeric() || "_\"".contains(letter);
            if text.ends_with(',') || text.ends_with(is_word) && token.starts_with(is_word) {
                text.push(' ');
            }
            text.push_str(&token);
            continue;
        };
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::None => ("", ""),
        };
        text.push_str(open);
        spell(group.stream(), text);
        text.push_str(close);
    }
}
