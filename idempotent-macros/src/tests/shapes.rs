//! One expansion for each class of handlers.

use expect_test::expect;
use quote::quote;

use super::check;

#[test]
fn free_function() {
    check(
        quote!(key = "event.id, channel"),
        quote! {
            /// Once per event and channel.
            pub async fn notify(
                tx: &mut Transaction<'_, Postgres>,
                event: &Event,
                channel: Channel,
            ) -> Result<NoticeId, AppError> {
                send(tx, event, channel).await
            }
        },
        &expect![[r#"
            /// Once per event and channel.
            pub async fn notify(
                tx: &mut Transaction<'_, Postgres>,
                event: &Event,
                channel: Channel,
            ) -> Result<::idempotent_runtime::Outcome<NoticeId>, AppError> {
                let frame = ::idempotent_runtime::__private::frame::<Result<NoticeId, AppError>>();
                let handler = {
                    static HANDLER: ::idempotent_runtime::__private::Handler = ::idempotent_runtime::__private::Handler::with_default_scope(
                        ::core::concat!(::core::module_path!(), "::notify(event.id,channel)"),
                        ::idempotent_runtime::__private::Options::DEFAULT,
                    );
                    ::idempotent_runtime::__private::located(&HANDLER, &|| {})
                };
                let key = {
                    let mut key = ::idempotent_runtime::__private::new_key(handler);
                    ::idempotent_runtime::__private::part(
                        ::idempotent_runtime::__private::at(&mut key, "event.id"),
                        &event.id,
                    );
                    ::idempotent_runtime::__private::part(
                        ::idempotent_runtime::__private::at(&mut key, "channel"),
                        &channel,
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
                    let hint = ::idempotent_runtime::__private::hint::<Result<NoticeId, AppError>>;
                    async move {
                        if false {
                            return hint();
                        }
                        send(tx, event, channel).await
                    }
                }
                    .await;
                ::idempotent_runtime::__private::finish(frame, claimed, result).await
            }
        "#]],
    );
}

#[test]
fn every_argument() {
    check(
        quote!(
            key(event.id),
            scope = "audit",
            tx = db,
            skip(mailer),
            guard = "savepoint",
            bind = claim,
            table = "inbox.seen",
            crate = company::idempotent,
        ),
        quote! {
            async fn audit(db: &mut Tx<'_>, event: &Event, mailer: &Mailer) -> anyhow::Result<()> {
                mailer.send(claim.derive("mail")).await
            }
        },
        &expect![[r#"
            async fn audit(
                db: &mut Tx<'_>,
                event: &Event,
                mailer: &Mailer,
            ) -> anyhow::Result<company::idempotent::Outcome<()>> {
                let frame = company::idempotent::__private::frame::<anyhow::Result<()>>();
                let handler = {
                    static HANDLER: company::idempotent::__private::Handler = company::idempotent::__private::Handler::new(
                        "audit",
                        company::idempotent::__private::Options {
                            guard: company::idempotent::__private::Guard::Savepoint,
                            table: ::core::option::Option::Some("inbox.seen"),
                            ..company::idempotent::__private::Options::DEFAULT
                        },
                    );
                    &HANDLER
                };
                let key = {
                    let mut key = company::idempotent::__private::new_key(handler);
                    company::idempotent::__private::part(
                        company::idempotent::__private::at(&mut key, "event.id"),
                        &event.id,
                    );
                    company::idempotent::__private::finish_key(key)
                };
                let lent = company::idempotent::__private::transaction_of(db);
                let mut claimed = match company::idempotent::__private::claim(
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
                    let claim = company::idempotent::__private::bound(&claimed);
                    let db = company::idempotent::__private::transaction(&mut claimed);
                    let hint = company::idempotent::__private::hint::<anyhow::Result<()>>;
                    async move {
                        if false {
                            return hint();
                        }
                        mailer.send(claim.derive("mail")).await
                    }
                }
                    .await;
                company::idempotent::__private::finish(frame, claimed, result).await
            }
        "#]],
    );
}

#[test]
fn wrapped_parts() {
    check(
        quote!(
            key = "required(msg.id), nullable(msg.parent), stable(msg.sent_at as i64), msg.tags[0], &msg.0.1",
            scope = "wrapped"
        ),
        quote! {
            #[deprecated]
            async fn store(tx: &mut Transaction<'_, Sqlite>, msg: Msg) -> sqlx::Result<()> {
                Ok(())
            }
        },
        &expect![[r##"
            #[deprecated]
            async fn store(
                tx: &mut Transaction<'_, Sqlite>,
                msg: Msg,
            ) -> sqlx::Result<::idempotent_runtime::Outcome<()>> {
                let frame = ::idempotent_runtime::__private::frame::<sqlx::Result<()>>();
                let handler = {
                    static HANDLER: ::idempotent_runtime::__private::Handler = ::idempotent_runtime::__private::Handler::new(
                        "wrapped",
                        ::idempotent_runtime::__private::Options::DEFAULT,
                    );
                    &HANDLER
                };
                let key = {
                    let mut key = ::idempotent_runtime::__private::new_key(handler);
                    ::idempotent_runtime::__private::required_part(
                        ::idempotent_runtime::__private::at(&mut key, "msg.id"),
                        &msg.id,
                    );
                    ::idempotent_runtime::__private::nullable_part(
                        ::idempotent_runtime::__private::at(&mut key, "msg.parent"),
                        &msg.parent,
                    );
                    ::idempotent_runtime::__private::stable_part(
                        ::idempotent_runtime::__private::at(&mut key, "msg.sent_at as i64"),
                        &(msg.sent_at as i64),
                    );
                    ::idempotent_runtime::__private::part(
                        ::idempotent_runtime::__private::at(&mut key, "msg.tags[0]"),
                        &msg.tags[0],
                    );
                    ::idempotent_runtime::__private::part(
                        ::idempotent_runtime::__private::at(&mut key, "msg.0.1"),
                        &&msg.0.1,
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
        "##]],
    );
}

#[test]
fn method() {
    check(
        quote!(key(self.tenant, id), scope = "orders"),
        quote! {
            async fn accept(mut self: Box<Self>, tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<u8> {
                self.count += 1;
                Ok(Self::ACCEPTED)
            }
        },
        &expect![[r#"
            async fn accept(
                mut self: Box<Self>,
                tx: &mut Transaction<'_, Sqlite>,
                id: i64,
            ) -> sqlx::Result<::idempotent_runtime::Outcome<u8>> {
                let frame = ::idempotent_runtime::__private::frame::<sqlx::Result<u8>>();
                let handler = {
                    static HANDLER: ::idempotent_runtime::__private::Handler = ::idempotent_runtime::__private::Handler::new(
                        "orders",
                        ::idempotent_runtime::__private::Options::DEFAULT,
                    );
                    &HANDLER
                };
                let key = {
                    let mut key = ::idempotent_runtime::__private::new_key(handler);
                    ::idempotent_runtime::__private::part(
                        ::idempotent_runtime::__private::at(&mut key, "self.tenant"),
                        &self.tenant,
                    );
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
                    let hint = ::idempotent_runtime::__private::hint::<sqlx::Result<u8>>;
                    async move {
                        if false {
                            return hint();
                        }
                        self.count += 1;
                        Ok(Self::ACCEPTED)
                    }
                }
                    .await;
                ::idempotent_runtime::__private::finish(frame, claimed, result).await
            }
        "#]],
    );
}

#[test]
fn generic() {
    check(
        quote!(key(msg), scope = "generic"),
        quote! {
            async fn handle<'a, DB: Store, M, const N: usize>(
                tx: &mut Transaction<'_, DB>,
                msg: &'a M,
                _sizes: [u8; N],
            ) -> Result<&'a str, Error>
            where
                M: KeyPart + Sync,
            {
                Ok(msg.name())
            }
        },
        &expect![[r#"
            async fn handle<'a, DB: Store, M, const N: usize>(
                tx: &mut Transaction<'_, DB>,
                msg: &'a M,
                _sizes: [u8; N],
            ) -> Result<::idempotent_runtime::Outcome<&'a str>, Error>
            where
                M: KeyPart + Sync,
            {
                let frame = ::idempotent_runtime::__private::frame::<Result<&'a str, Error>>();
                let handler = {
                    static HANDLER: ::idempotent_runtime::__private::Handler = ::idempotent_runtime::__private::Handler::new(
                        "generic",
                        ::idempotent_runtime::__private::Options::DEFAULT,
                    );
                    &HANDLER
                };
                let key = {
                    let mut key = ::idempotent_runtime::__private::new_key(handler);
                    ::idempotent_runtime::__private::part(
                        ::idempotent_runtime::__private::at(&mut key, "msg"),
                        &msg,
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
                    let hint = ::idempotent_runtime::__private::hint::<Result<&'a str, Error>>;
                    async move {
                        if false {
                            return hint();
                        }
                        Ok(msg.name())
                    }
                }
                    .await;
                ::idempotent_runtime::__private::finish(frame, claimed, result).await
            }
        "#]],
    );
}

/// `mut` of a plain name moves into the body; patterns stay.
#[test]
fn patterns() {
    check(
        quote!(key = "id, a, list"),
        quote! {
            async fn handle(
                _tx: &mut Transaction<'_, Sqlite>,
                Msg { id, .. }: Msg,
                (a, mut b): (u8, String),
                mut list: String,
                _: &Context,
            ) -> sqlx::Result<()> {
                #![allow(unused)]
                list.push('x');
                Ok(())
            }
        },
        &expect![[r##"
            #[allow(unused)]
            async fn handle(
                _tx: &mut Transaction<'_, Sqlite>,
                Msg { id, .. }: Msg,
                (a, mut b): (u8, String),
                list: String,
                _: &Context,
            ) -> sqlx::Result<::idempotent_runtime::Outcome<()>> {
                let frame = ::idempotent_runtime::__private::frame::<sqlx::Result<()>>();
                let handler = {
                    static HANDLER: ::idempotent_runtime::__private::Handler = ::idempotent_runtime::__private::Handler::with_default_scope(
                        ::core::concat!(::core::module_path!(), "::handle(id,a,list)"),
                        ::idempotent_runtime::__private::Options::DEFAULT,
                    );
                    ::idempotent_runtime::__private::located(&HANDLER, &|| {})
                };
                let key = {
                    let mut key = ::idempotent_runtime::__private::new_key(handler);
                    ::idempotent_runtime::__private::part(
                        ::idempotent_runtime::__private::at(&mut key, "id"),
                        &id,
                    );
                    ::idempotent_runtime::__private::part(
                        ::idempotent_runtime::__private::at(&mut key, "a"),
                        &a,
                    );
                    ::idempotent_runtime::__private::part(
                        ::idempotent_runtime::__private::at(&mut key, "list"),
                        &list,
                    );
                    ::idempotent_runtime::__private::finish_key(key)
                };
                #[allow(clippy::used_underscore_binding)]
                let lent = ::idempotent_runtime::__private::transaction_of(_tx);
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
                    let _tx = ::idempotent_runtime::__private::transaction(&mut claimed);
                    let hint = ::idempotent_runtime::__private::hint::<sqlx::Result<()>>;
                    async move {
                        if false {
                            return hint();
                        }
                        let mut list = list;
                        list.push('x');
                        Ok(())
                    }
                }
                    .await;
                ::idempotent_runtime::__private::finish(frame, claimed, result).await
            }
        "##]],
    );
}

/// An alias that does not end in `Result<…>` goes through a projection.
#[test]
fn alias_of_result() {
    check(
        quote!(key = "id"),
        quote! {
            async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64) -> Answer<'_, u8> {
                Ok(0)
            }
        },
        &expect![[r#"
            async fn handle(
                tx: &mut Transaction<'_, Sqlite>,
                id: i64,
            ) -> <Answer<'_, u8> as ::idempotent_runtime::__private::HandlerResult>::Outcome {
                let frame = ::idempotent_runtime::__private::frame::<Answer<'_, u8>>();
                let handler = {
                    static HANDLER: ::idempotent_runtime::__private::Handler = ::idempotent_runtime::__private::Handler::with_default_scope(
                        ::core::concat!(::core::module_path!(), "::handle(id)"),
                        ::idempotent_runtime::__private::Options::DEFAULT,
                    );
                    ::idempotent_runtime::__private::located(&HANDLER, &|| {})
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
                    let hint = ::idempotent_runtime::__private::hint::<Answer<'_, u8>>;
                    async move {
                        if false {
                            return hint();
                        }
                        Ok(0)
                    }
                }
                    .await;
                ::idempotent_runtime::__private::finish(frame, claimed, result).await
            }
        "#]],
    );
}

/// What `#[async_trait]` makes of a method, as this attribute finds it.
#[test]
fn boxed_future() {
    check(
        quote!(key = "id", scope = "boxed"),
        quote! {
            fn handle<'life0, 'life1, 'async_trait>(
                &'life0 self,
                tx: &'life1 mut Transaction<'static, Sqlite>,
                id: i64,
            ) -> ::core::pin::Pin<Box<
                dyn ::core::future::Future<Output = Result<u8, Error>> + ::core::marker::Send + 'async_trait,
            >>
            where
                'life0: 'async_trait,
                'life1: 'async_trait,
                Self: 'async_trait,
            {
                Box::pin(async move {
                    let __self = self;
                    Ok(__self.count)
                })
            }
        },
        &expect![[r#"
            fn handle<'life0, 'life1, 'async_trait>(
                &'life0 self,
                tx: &'life1 mut Transaction<'static, Sqlite>,
                id: i64,
            ) -> ::core::pin::Pin<
                Box<
                    dyn ::core::future::Future<
                        Output = Result<::idempotent_runtime::Outcome<u8>, Error>,
                    > + ::core::marker::Send + 'async_trait,
                >,
            >
            where
                'life0: 'async_trait,
                'life1: 'async_trait,
                Self: 'async_trait,
            {
                ::std::boxed::Box::pin(async move {
                    let frame = ::idempotent_runtime::__private::frame::<Result<u8, Error>>();
                    let handler = {
                        static HANDLER: ::idempotent_runtime::__private::Handler = ::idempotent_runtime::__private::Handler::new(
                            "boxed",
                            ::idempotent_runtime::__private::Options::DEFAULT,
                        );
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
                        let future: ::core::pin::Pin<
                            Box<
                                dyn ::core::future::Future<
                                    Output = Result<u8, Error>,
                                > + ::core::marker::Send + '_,
                            >,
                        > = {
                            Box::pin(async move {
                                let __self = self;
                                Ok(__self.count)
                            })
                        };
                        future
                    }
                        .await;
                    ::idempotent_runtime::__private::finish(frame, claimed, result).await
                })
            }
        "#]],
    );
}

#[test]
fn raw_identifiers() {
    check(
        quote!(key(msg.r#type, r#move.id)),
        quote! {
            async fn r#loop(tx: &mut Transaction<'_, Sqlite>, msg: Msg, r#move: &Move) -> sqlx::Result<()> {
                Ok(())
            }
        },
        &expect![[r#"
            async fn r#loop(
                tx: &mut Transaction<'_, Sqlite>,
                msg: Msg,
                r#move: &Move,
            ) -> sqlx::Result<::idempotent_runtime::Outcome<()>> {
                let frame = ::idempotent_runtime::__private::frame::<sqlx::Result<()>>();
                let handler = {
                    static HANDLER: ::idempotent_runtime::__private::Handler = ::idempotent_runtime::__private::Handler::with_default_scope(
                        ::core::concat!(::core::module_path!(), "::loop(msg.type,move.id)"),
                        ::idempotent_runtime::__private::Options::DEFAULT,
                    );
                    ::idempotent_runtime::__private::located(&HANDLER, &|| {})
                };
                let key = {
                    let mut key = ::idempotent_runtime::__private::new_key(handler);
                    ::idempotent_runtime::__private::part(
                        ::idempotent_runtime::__private::at(&mut key, "msg.r#type"),
                        &msg.r#type,
                    );
                    ::idempotent_runtime::__private::part(
                        ::idempotent_runtime::__private::at(&mut key, "r#move.id"),
                        &r#move.id,
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
