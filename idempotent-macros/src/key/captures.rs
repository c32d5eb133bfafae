//! Names that a format string captures, where no parameter is looked for.

use proc_macro2::TokenTree;
use syn::{Ident, LitStr, Macro};

/// `name` of `{name}`, `{name:?}`, `{:name$}` and `{:.name$}` in a `format!`,
/// unless it is given as `name = …`.
pub(super) fn captures(call: &Macro) -> Vec<String> {
    let mut tokens = call.tokens.clone().into_iter();
    let Some(TokenTree::Literal(format)) = tokens.next().filter(|_| is_format(call)) else {
        return Vec::new();
    };
    let Ok(text) = syn::parse2::<LitStr>(TokenTree::from(format).into()) else {
        return Vec::new();
    };
    let given: Vec<String> = tokens.map(|token| token.to_string()).collect();
    let is_given = |name: &str| given.windows(2).any(|pair| pair == [name, "="]);
    let mut names = names(&text.value());
    names.retain(|name| !is_given(name));
    names
}

/// `format!` and `format_args!`, by whatever path.
pub(super) fn is_format(call: &Macro) -> bool {
    let last = call.path.segments.last();
    last.is_some_and(|last| last.ident == "format" || last.ident == "format_args")
}

fn names(format: &str) -> Vec<String> {
    let format = format.replace("{{", "");
    let mut names: Vec<String> = Vec::new();
    for hole in format.split('{').skip(1) {
        let hole = hole.split('}').next().unwrap_or_default();
        let (value, spec) = hole.split_once(':').unwrap_or((hole, ""));
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        // `width$` and `precision$`: what stands before a `$`, after fill, sign and zero.
        let counts = spec.rsplit_once('$').map_or("", |(before, _)| before);
        let counts = counts
            .split('$')
            .filter_map(|text| text.rsplit(|letter| !is_part(letter)).next());
        let counts = counts.map(|name| name.trim_start_matches('0'));
        for name in std::iter::once(value.trim()).chain(counts) {
            let is_name = syn::parse_str::<Ident>(name).is_ok();
            if is_name && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn names_in_format_strings() {
        for (format, expected) in [
            ("", vec![]),
            ("a b", vec![]),
            ("{} {0} {:?}", vec![]),
            ("{a}", vec!["a"]),
            ("{a:?}-{b:>8}", vec!["a", "b"]),
            ("{{a}} {b}", vec!["b"]),
            ("{:width$}", vec!["width"]),
            ("{a:>width$.precision$}", vec!["a", "width", "precision"]),
            ("{:.precision$}", vec!["precision"]),
            ("{:0width$x}", vec!["width"]),
            ("{:1$}", vec![]),
            ("{a} {a}", vec!["a"]),
            ("{", vec![]),
        ] {
            assert_eq!(names(format), expected, "{format}");
        }
    }
}
