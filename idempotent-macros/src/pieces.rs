//! What stands between commas, in the attribute and in the key.

use proc_macro2::{Span, TokenStream, TokenTree};

/// What stands between two commas.
#[derive(Default)]
pub(crate) struct Piece {
    pub(crate) tokens: Vec<TokenTree>,
    /// The comma after it.
    pub(crate) comma: Option<Span>,
}

/// Splits at commas that stand outside brackets. A trailing comma is none.
pub(crate) fn split(tokens: TokenStream) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut piece = Piece::default();
    let mut angles = 0_u32;
    for token in tokens {
        let is_turbofish = piece.tokens.last().is_some_and(|last| is(last, ':'));
        if is(&token, ',') && angles == 0 {
            piece.comma = Some(token.span());
            pieces.push(std::mem::take(&mut piece));
            continue;
        }
        if is(&token, '<') && (is_turbofish || angles > 0) {
            angles += 1;
        } else if is(&token, '>') {
            angles = angles.saturating_sub(1);
        }
        piece.tokens.push(token);
    }
    if pieces.is_empty() || !piece.tokens.is_empty() {
        pieces.push(piece);
    }
    pieces
}

fn is(token: &TokenTree, punct: char) -> bool {
    matches!(token, TokenTree::Punct(token) if token.as_char() == punct)
}
