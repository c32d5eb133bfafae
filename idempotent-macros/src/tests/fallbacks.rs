//! What is left of a handler beside an error: the function, with the outward
//! signature that success would have.

use expect_test::expect;
use quote::quote;

use super::check;

#[test]
fn mistake_in_an_argument() {
    check(
        quote!(kye = "id", bind = claim),
        quote! {
            #[must_use]
            pub async fn handle(tx: &mut Transaction<'_, Sqlite>, mut id: i64) -> Result<u8, Error> {
                id += claim.offset();
                Ok(id)
            }
        },
        &expect![[r##"
            #[must_use]
            pub async fn handle(
                tx: &mut Transaction<'_, Sqlite>,
                id: i64,
            ) -> Result<::idempotent_runtime::Outcome<u8>, Error> {
                let _ = (&tx, &id);
                ::idempotent_runtime::__private::unclaimed(
                    {
                        let claim = ::idempotent_runtime::__private::hint::<
                            ::idempotent_runtime::Claim,
                        >();
                        let hint = ::idempotent_runtime::__private::hint::<Result<u8, Error>>;
                        async move {
                            if false {
                                return hint();
                            }
                            let mut id = id;
                            id += claim.offset();
                            Ok(id)
                        }
                    }
                        .await,
                )
            }
            ::core::compile_error!(
                "unknown argument `kye` of `#[idempotent]`\nhelp: did you mean `key`?",
            )
        "##]],
    );
}

#[test]
fn mistakes_in_the_key() {
    check(
        quote!(key = "mgs.id, chanel", scope = "a"),
        quote! {
            async fn handle(&self, tx: &mut Transaction<'_, Sqlite>, msg: &Msg, channel: Channel) -> Result<u8, Error> {
                Ok(0)
            }
        },
        &expect![[r#"
            async fn handle(
                &self,
                tx: &mut Transaction<'_, Sqlite>,
                msg: &Msg,
                channel: Channel,
            ) -> Result<::idempotent_runtime::Outcome<u8>, Error> {
                let _ = (&tx, &msg, &channel);
                ::idempotent_runtime::__private::unclaimed(
                    {
                        let hint = ::idempotent_runtime::__private::hint::<Result<u8, Error>>;
                        async move {
                            if false {
                                return hint();
                            }
                            Ok(0)
                        }
                    }
                        .await,
                )
            }
            ::core::compile_error!(
                "no parameter named `mgs` in `handle`, for the key's `mgs.id`\nhelp: did you mean `msg`?",
            )
            ::core::compile_error!(
                "no parameter named `chanel` in `handle`\nhelp: did you mean `channel`?",
            )
        "#]],
    );
}

#[test]
fn boxed_future() {
    check(
        quote!(key = "id"),
        quote! {
            fn handle<'life0, 'async_trait>(
                &'life0 self,
                id: i64,
            ) -> Pin<Box<dyn Future<Output = Result<u8, Error>> + Send + 'async_trait>>
            where
                Self: 'async_trait,
            {
                Box::pin(async move { Ok(0) })
            }
        },
        &expect![[r#"
            fn handle<'life0, 'async_trait>(
                &'life0 self,
                id: i64,
            ) -> Pin<
                Box<
                    dyn Future<
                        Output = Result<::idempotent_runtime::Outcome<u8>, Error>,
                    > + Send + 'async_trait,
                >,
            >
            where
                Self: 'async_trait,
            {
                ::std::boxed::Box::pin(async move {
                    let _ = (&id,);
                    ::idempotent_runtime::__private::unclaimed(
                        {
                            let future: Pin<
                                Box<dyn Future<Output = Result<u8, Error>> + Send + '_>,
                            > = { Box::pin(async move { Ok(0) }) };
                            future
                        }
                            .await,
                    )
                })
            }
            ::core::compile_error!(
                "`handle` takes no transaction\nhelp: the key must be written in the same transaction as the effect: take `tx: &mut sqlx::Transaction<'_, DB>`, or name it with `tx = ...`",
            )
            ::core::compile_error!(
                "`handle` needs a `scope`: a method's path, the default, does not name its type\nhelp: write for instance `scope = \"orders.handle\"`, which no other handler has, and which stays when the code moves",
            )
        "#]],
    );
}

#[test]
fn half_typed_body() {
    check(
        quote!(key(msg.)),
        quote! {
            async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> Result<u8, Error> {
                let id = msg.;
                Ok(id)
            }
        },
        &expect![[r#"
            async fn handle (tx : & mut Transaction < '_ , Sqlite > , msg : & Msg) -> Result < :: idempotent_runtime :: Outcome < u8 > , Error > { let _ = (& tx , & msg ,) ; :: idempotent_runtime :: __private :: unclaimed ({ let hint = :: idempotent_runtime :: __private :: hint :: < Result < u8 , Error > > ; async move { if false { return hint () ; } let id = msg . ; Ok (id) } } . await) } :: core :: compile_error ! { "`msg.` in the key is not a path from a parameter\nhelp: write a field, method call or literal index, for instance `event.id`; any other expression stands in `stable(...)`, with a `scope` beside `key`" }
        "#]],
    );
}

#[test]
fn no_function() {
    check(
        quote!(key = "id"),
        quote!(
            struct Handler;
        ),
        &expect![[r#"
            struct Handler;
            ::core::compile_error!(
                "`#[idempotent]` goes on an `async fn`\nhelp: put it on the handler itself",
            )
        "#]],
    );
}

#[test]
fn no_body() {
    check(
        quote!(key = "id"),
        quote! {
            async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64) -> Result<Outcome<u8>, Error>;
        },
        &expect![[r#"
            async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64) -> Result<Outcome<u8>, Error>;
            ::core::compile_error!(
                "`handle` has no body to make idempotent\nhelp: put the attribute on the implementations; here, write the outward type `Result<Outcome<T>, E>`",
            )
        "#]],
    );
}

#[test]
fn not_async() {
    check(
        quote!(key = "id"),
        quote! {
            fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64) -> Result<u8, Error> {
                Ok(0)
            }
        },
        &expect![[r#"
            async fn handle(
                tx: &mut Transaction<'_, Sqlite>,
                id: i64,
            ) -> Result<::idempotent_runtime::Outcome<u8>, Error> {
                let _ = (&tx, &id);
                ::idempotent_runtime::__private::unclaimed(
                    {
                        let hint = ::idempotent_runtime::__private::hint::<Result<u8, Error>>;
                        async move {
                            if false {
                                return hint();
                            }
                            Ok(0)
                        }
                    }
                        .await,
                )
            }
            ::core::compile_error!(
                "`handle` is not `async`\nhelp: write `async fn`, and return the `Result` itself",
            )
        "#]],
    );
}

#[test]
fn no_result() {
    check(
        quote!(key = "id", skip = id),
        quote! {
            async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64) {}
        },
        &expect![[r#"
            async fn handle(
                tx: &mut Transaction<'_, Sqlite>,
                id: i64,
            ) -> ::core::result::Result<
                ::idempotent_runtime::Outcome<()>,
                ::idempotent_runtime::Error,
            > {
                let _ = (&tx, &id);
                let _: () = {
                    let hint = ::idempotent_runtime::__private::hint::<()>;
                    async move {
                        if false {
                            return hint();
                        }
                    }
                }
                    .await;
                ::idempotent_runtime::__private::hint()
            }
            ::core::compile_error!(
                "`skip` is not written like this\nhelp: write for instance `skip(mailer, config)`",
            )
            ::core::compile_error!(
                "`handle` does not return a `Result`\nhelp: write `-> Result<(), E>` with an `E` that is `From<idempotent_runtime::Error>`",
            )
        "#]],
    );
}
