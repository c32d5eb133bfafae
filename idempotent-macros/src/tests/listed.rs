//! What the list of handlers adds, where the runtime keeps one.

use expect_test::expect;
use proc_macro2::{TokenStream, TokenTree};
use quote::quote;

use super::{compare, expand};
use crate::listing::Listing;

fn listed(args: TokenStream, item: &TokenStream) -> TokenStream {
    crate::expand::expand(args, item, Listing::On)
}

/// The statement that enters the handler.
fn entry(args: &str, item: &str) -> String {
    let expansion = listed(args.parse().unwrap(), &item.parse().unwrap()).to_string();
    let (_, entry) = expansion.split_once("register ! {").unwrap();
    entry.split_once('}').unwrap().0.trim().to_owned()
}

#[test]
fn an_entry_stands_beside_the_static() {
    let item = quote! {
        async fn audit(tx: &mut Transaction<'_, Postgres>, id: i64) -> sqlx::Result<()> {
            Ok(())
        }
    };
    compare(
        &listed(quote!(key(id), scope = "audit"), &item),
        &expect![[r#"
            async fn audit(
                tx: &mut Transaction<'_, Postgres>,
                id: i64,
            ) -> sqlx::Result<::idempotent_runtime::Outcome<()>> {
                let frame = ::idempotent_runtime::__private::frame::<sqlx::Result<()>>();
                let handler = {
                    static HANDLER: ::idempotent_runtime::__private::Handler = ::idempotent_runtime::__private::Handler::new(
                        "audit",
                        ::idempotent_runtime::__private::Options::DEFAULT,
                    );
                    ::idempotent_runtime::__private::register! {
                        HANDLER, key = "id"
                    }
                    &HANDLER
                };
                let key = {
                    let mut key = ::idempotent_runtime::__private::new_key(handler);
                    ::idempotent_runtime::__private::part(
                        ::idempotent_runtime::__private::at(&mut key, "id"),
                        &id,
                    );
                    ::idempotent_runtime::__private::finish_key(key)
                };
                let lent = ::idempotent_runtime::__private::transaction_of(tx);
                let mut claimed = match ::idempotent_runtime::__private::claim(
                        frame,
                        lent,
                        handler,
                        key,
                    )
                    .await
                {
                    ::core::result::Result::Ok(claimed) => claimed,
                    ::core::result::Result::Err(outcome) => return outcome,
                };
                let result = {
                    let tx = ::idempotent_runtime::__private::transaction(&mut claimed);
                    let hint = ::idempotent_runtime::__private::hint::<sqlx::Result<()>>;
                    async move {
                        if false {
                            return hint();
                        }
                        Ok(())
                    }
                }
                    .await;
                ::idempotent_runtime::__private::finish(frame, claimed, result).await
            }
        "#]],
    );
}

#[test]
fn every_argument_that_only_the_list_knows() {
    let list =
        "async fn f(tx: &mut Transaction<'_, Postgres>, events: Vec<Event>) -> sqlx::Result<()> {}";
    assert_eq!(
        entry("each = \"event in events\", key(event.id)", list),
        "HANDLER , key = \"event.id\" , each = \"event in events\""
    );
    let one = "async fn f(tx: &mut Transaction<'_, Postgres>, msg: &Msg) -> sqlx::Result<()> {}";
    assert_eq!(
        entry("key(msg.id), replay, fingerprint(msg.amount , msg.to)", one),
        "HANDLER , key = \"msg.id\" , fingerprint = \"msg.amount, msg.to\" , replay = true"
    );
    assert_eq!(
        entry(
            "key(msg.id), retain = \"7 days\", redelivery = \"4 days\"",
            one
        ),
        "HANDLER , key = \"msg.id\" , redelivery = 345600u64"
    );
    assert_eq!(
        entry(
            "key(msg.id), scope = \"now\", was(\"b\"), was(scope = \"a\", key = \"msg.number\")",
            one
        ),
        "HANDLER , key = \"msg.id\" , was = & [(\"b\" , \"\") , (\"a\" , \"msg.number\")]"
    );
}

#[test]
fn both_ways_to_write_a_key_are_one() {
    let item = "async fn f(tx: &mut Transaction<'_, Postgres>, msg: &Msg) -> sqlx::Result<()> {}";
    let string = entry(
        "key = \" msg . id ,nullable( msg.parent)\", scope = \"f\"",
        item,
    );
    let list = entry("key(msg.id, nullable(msg.parent),), scope = \"f\"", item);
    assert_eq!(string, list);
    assert_eq!(string, "HANDLER , key = \"msg.id, nullable(msg.parent)\"");
}

/// With the list; without it they are those of the other snapshots, and nobody
/// pays for what is not kept.
#[test]
fn an_entry_is_seventeen_tokens_more() {
    fn count(tokens: TokenStream) -> usize {
        let tokens = tokens.into_iter().map(|token| match token {
            TokenTree::Group(group) => 2 + count(group.stream()),
            _ => 1,
        });
        tokens.sum()
    }
    let args = quote!(key(msg.id, msg.channel), scope = "notify");
    let item = quote! {
        async fn notify(tx: &mut Transaction<'_, Postgres>, msg: &Msg) -> sqlx::Result<()> {
            Ok(())
        }
    };
    let without = count(expand(args.clone(), &item));
    let with = count(listed(args, &item));
    println!("{without} tokens, with the list {with}");
    assert_eq!(with - without, 17);
}
