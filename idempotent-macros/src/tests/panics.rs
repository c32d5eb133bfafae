//! No input makes the attribute panic, and what it accepts it turns into items.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use proptest::prelude::*;

use super::errors;
use super::expand;

const ARGS: [&str; 5] = [
    "key = \"event.id, channel\", scope = \"a\"",
    "key(stable(f::<A, B>(&msg.at)), required(msg.0.1), msg.tags[0].get(\"x\")), skip(a, b), bind = claim",
    "key(msg.id), tx = db, guard = \"savepoint\", table = \"inbox.seen\", crate = a::b",
    "key = \"nullable(self.id), id\", scope = \"a\", skip(event)",
    "key(event.id, channel)",
];

const ITEMS: [&str; 4] = [
    "pub async fn notify(tx: &mut Transaction<'_, Postgres>, event: &Event, channel: Channel) -> Result<u8, E> { send(tx).await }",
    "async fn handle<DB: Store>(&mut self, mut db: &mut Tx<'_>, Msg { id, .. }: Msg, (a, b): (u8, u8), msg: impl M) -> Res<u8> where A: B { #![allow(x)] Ok(1) }",
    "fn handle<'a>(&'a self, tx: &'a mut Transaction<'a, S>, id: i64) -> Pin<Box<dyn Future<Output = Result<u8, E>> + Send + 'a>> { Box::pin(async move { Ok(0) }) }",
    "unsafe extern \"C\" fn f(x: [u8; 3]) -> ! { loop {} }",
];

const TYPES: [&str; 4] = [
    "#[key(transparent, crate = a::b)] pub struct Id<T: Clone>(u64, PhantomData<T>) where T: Copy;",
    "#[serde(default)] struct Msg<'a> { #[key] #[serde(default = \"new_v4\")] id: &'a Uuid, #[key(nullable, stable)] at: Option<i64>, r#type: String }",
    "enum Channel { Email, #[key(name = \"Push\")] Mobile { #[key(required)] device: Option<u8> }, Post(u8, u8) }",
    "union U { a: u8, offset: i64 }",
];

const WORDS: &str = "key scope tx skip r#type self Self crate mut & . , :: : ; = < > -> ! # _ .. 0.1 'a 'x' \
     \"msg.\" \"\" \"é\" b\"x\" 1u8 fn async impl dyn Transaction Result Pin Box stable required nullable now \
     new_v4 {} () [] (,) (a.b) |x| $ ? + *";

fn tokens(text: &str) -> TokenStream {
    text.parse().unwrap()
}

/// One change somewhere in the tree of tokens.
#[derive(Clone, Debug)]
enum Change {
    Remove,
    Repeat,
    Swap,
    Ungroup,
    Group(u8),
    Replace(usize),
    Insert(usize),
}

fn change() -> impl Strategy<Value = (usize, Change)> {
    let word = 0..tokens(WORDS).into_iter().count();
    let change = prop_oneof![
        Just(Change::Remove),
        Just(Change::Repeat),
        Just(Change::Swap),
        Just(Change::Ungroup),
        (0..4_u8).prop_map(Change::Group),
        word.clone().prop_map(Change::Replace),
        word.prop_map(Change::Insert),
    ];
    (0..200_usize, change)
}

/// Changes the token at this position, counted depth first.
fn apply(stream: TokenStream, position: &mut usize, change: &Change) -> TokenStream {
    let mut tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut index = 0;
    while index < tokens.len() {
        if *position == 0 {
            *position = usize::MAX;
            edit(&mut tokens, index, change);
            break;
        }
        *position -= 1;
        if let TokenTree::Group(group) = &tokens[index] {
            let inner = apply(group.stream(), position, change);
            tokens[index] = Group::new(group.delimiter(), inner).into();
        }
        if *position == usize::MAX {
            break;
        }
        index += 1;
    }
    tokens.into_iter().collect()
}

fn edit(trees: &mut Vec<TokenTree>, index: usize, change: &Change) {
    let word = |at: usize| tokens(WORDS).into_iter().nth(at).unwrap();
    match change {
        Change::Remove => drop(trees.remove(index)),
        Change::Repeat => trees.insert(index, trees[index].clone()),
        Change::Swap => trees.swap(index, 0),
        Change::Ungroup => {
            if let TokenTree::Group(group) = trees[index].clone() {
                trees.splice(index..=index, group.stream());
            }
        }
        Change::Group(kind) => {
            let delimiters = [
                Delimiter::Parenthesis,
                Delimiter::Brace,
                Delimiter::Bracket,
                Delimiter::None,
            ];
            let inner = TokenStream::from(trees[index].clone());
            trees[index] = Group::new(delimiters[usize::from(*kind)], inner).into();
        }
        Change::Replace(at) => trees[index] = word(*at),
        Change::Insert(at) => trees.insert(index, word(*at)),
    }
}

/// So many inputs, and in the full run so many: a million in all.
fn cases(short: u32, full: u32) -> ProptestConfig {
    let is_full = std::env::var_os("IDEMPOTENT_FULL").is_some_and(|value| value == "1");
    ProptestConfig {
        cases: if is_full { full } else { short },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// The tokens of a text, changed in one place after the other.
fn mutated(text: &str, changes: &[(usize, Change)]) -> TokenStream {
    let change = |stream: TokenStream, (position, change): &(usize, Change)| {
        let count = stream.to_string().split_whitespace().count().max(1);
        apply(stream, &mut (position % count), change)
    };
    changes.iter().fold(tokens(text), change)
}

/// The name of the first function.
fn function(tokens: &TokenStream) -> Option<String> {
    let mut tokens = ungrouped(tokens.clone()).into_iter();
    tokens.find(|token| token.to_string() == "fn")?;
    match tokens.next()? {
        TokenTree::Ident(name) => Some(name.to_string()),
        _ => None,
    }
}

/// Without the groups that have no brackets, which a parser may look through.
fn ungrouped(tokens: TokenStream) -> Vec<TokenTree> {
    let tokens = tokens.into_iter().flat_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            ungrouped(group.stream())
        }
        token => vec![token],
    });
    tokens.collect()
}

proptest! {
    #![proptest_config(cases(1_000, 500_000))]

    #[test]
    fn any_tokens(
        args in proptest::sample::select(&ARGS),
        item in proptest::sample::select(&ITEMS),
        in_args in proptest::collection::vec(change(), 0..4),
        in_item in proptest::collection::vec(change(), 0..3),
    ) {
        let (args, item) = (mutated(args, &in_args), mutated(item, &in_item));
        let expansion = expand(args.clone(), &item);
        if errors(expansion.clone()).is_empty() {
            prop_assert!(!args.is_empty(), "a key is required");
        }
        prop_assert_eq!(function(&expansion), function(&item), "the function is gone");
        if syn::parse2::<syn::ItemFn>(item).is_ok() {
            prop_assert!(syn::parse2::<syn::File>(expansion).is_ok());
        }
        proc_macro2::extra::invalidate_current_thread_spans();
    }
}

proptest! {
    #![proptest_config(cases(256, 250_000))]

    /// A key literal holds any text at all.
    #[test]
    fn any_key(key in "\\PC{0,40}|[a-z.,() \"'0-9&:<>!\\[\\]]{0,40}") {
        let args = TokenStream::from(TokenTree::from(proc_macro2::Literal::string(&key)));
        let args = quote::quote!(key = #args, scope = "s", skip(msg));
        let handler = tokens("async fn f(tx: &mut Transaction<'_, D>, msg: M) -> Result<(), E> { Ok(()) }");
        let expansion = expand(args, &handler);
        prop_assert!(syn::parse2::<syn::File>(expansion).is_ok());
        proc_macro2::extra::invalidate_current_thread_spans();
    }

    /// The derive gives both implementations or an error.
    #[test]
    fn any_type(
        ty in proptest::sample::select(&TYPES),
        changes in proptest::collection::vec(change(), 0..4),
    ) {
        let expansion = crate::derive::expand(mutated(ty, &changes));
        let is_implemented = expansion.to_string().contains("KeyPart for");
        prop_assert!(is_implemented || !errors(expansion).is_empty());
        proc_macro2::extra::invalidate_current_thread_spans();
    }
}

/// On three quarters of the stack that rustc has.
#[test]
fn no_depth_is_too_deep() {
    let thread = std::thread::Builder::new().stack_size(6 << 20);
    thread.spawn(nest).unwrap().join().unwrap();
}

/// What nests deeper than any program does, in each way that Rust can nest.
fn nest() {
    for depth in [10, 60, 500, 30_000] {
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("&", ""),
            ("*const ", ""),
            ("fn() -> ", ""),
            ("Vec<", ">"),
            ("<", " as T>::A"),
            ("impl Fn() -> ", ""),
            ("dyn Fn(", ")"),
        ] {
            let ty = format!("{}u8{}", open.repeat(depth), close.repeat(depth));
            let item =
                format!("async fn f(tx: &mut Tx<'_>, msg: {ty}) -> Result<(), E> {{ Ok(()) }}");
            let expansion = expand("key(msg)".parse().unwrap(), &tokens(&item));
            assert_eq!(function(&expansion), Some("f".to_owned()), "{open} {depth}");
            let item = format!("struct M {{ id: {ty} }}");
            assert!(!crate::derive::expand(tokens(&item)).is_empty());
            let code = format!("{}x{}", open.repeat(depth), close.repeat(depth));
            let item = format!("struct M {{ #[serde(default = {code:?})] id: u8 }}");
            assert!(!crate::derive::expand(tokens(&item)).is_empty());
        }
    }
    let handler =
        tokens("async fn f(tx: &mut Transaction<'_, D>, msg: M) -> Result<(), E> { Ok(()) }");
    for depth in [10, 60, 500, 30_000] {
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("{", "}"),
            ("f(", ")"),
            ("stable(", ")"),
            ("&", ""),
            ("!", ""),
            ("-", ""),
            ("", ".a"),
            ("", ".a()"),
            ("", "[0]"),
            ("", " + 1"),
            ("msg = ", ""),
            ("|x| ", ""),
            ("", " as u8"),
            ("if msg { } else ", "{ }"),
            ("return ", ""),
            ("<<", ""),
            ("f!(", ")"),
            ("f::<", ">"),
            ("msg.a::<(", ")>()"),
        ] {
            let (opened, closed) = (open.repeat(depth), close.repeat(depth));
            for key in [
                format!("{opened}msg{closed}"),
                format!("stable({opened}msg{closed})"),
            ] {
                let literal =
                    TokenStream::from(TokenTree::from(proc_macro2::Literal::string(&key)));
                let expansion = expand(quote::quote!(key = #literal, scope = "s"), &handler);
                assert!(
                    expansion.to_string().contains("async fn f"),
                    "{open} {depth}"
                );
            }
        }
    }
}
