//! What nests deeper than a parser's stack allows, found before it is parsed.

use proc_macro2::{Span, TokenTree};

/// Of brackets.
const MOST_LEVELS: usize = 64;

/// Without a comma, a semicolon or an attribute between them.
const MOST_IN_A_ROW: usize = 256;

/// Where the tokens nest too deeply: brackets in brackets, or a row of prefixes.
pub(crate) fn too_deep(tokens: impl IntoIterator<Item = TokenTree>) -> Option<Span> {
    let mut levels = vec![(tokens.into_iter().collect::<Vec<_>>().into_iter(), 0_usize)];
    while let Some((tokens, row)) = levels.last_mut() {
        let Some(token) = tokens.next() else {
            levels.pop();
            continue;
        };
        let is_separator =
            matches!(&token, TokenTree::Punct(punct) if [',', ';', '#'].contains(&punct.as_char()));
        *row = if is_separator { 0 } else { *row + 1 };
        if *row > MOST_IN_A_ROW || levels.len() > MOST_LEVELS {
            return Some(token.span());
        }
        if let TokenTree::Group(group) = token {
            let inner: Vec<_> = group.stream().into_iter().collect();
            levels.push((inner.into_iter(), 0));
        }
    }
    None
}
