//! Handlers that `macro_rules!` made: names and keys come from the caller, from
//! the macro, or one from each.

use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

use super::{begin, delivered};

struct Msg {
    id: i64,
    channel: &'static str,
}

fn msg() -> Msg {
    Msg {
        id: 7,
        channel: "push",
    }
}

/// All names are the macro's.
macro_rules! own {
    ($quoted:ident, $unquoted:ident) => {
        #[idempotent(key = "msg.id, stable(msg.id + 1)", scope = "own_quoted")]
        async fn $quoted(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<i64> {
            sqlx::query("SELECT 1").execute(&mut **tx).await?;
            Ok(msg.id)
        }

        #[idempotent(key(msg.id, stable(msg.id + 1)), scope = "own_unquoted", bind = claim)]
        async fn $unquoted(tx: &mut Transaction<'_, Sqlite>, mut msg: Msg) -> sqlx::Result<usize> {
            msg.id += 1;
            assert!(msg.id > 1);
            sqlx::query("SELECT 1").execute(&mut **tx).await?;
            Ok(claim.key().len())
        }
    };
}

own!(own_quoted, own_unquoted);

/// All names are the caller's, in every kind of fragment.
macro_rules! given {
    (
        $(#[$attribute:meta])*
        $visibility:vis fn $name:ident($tx:ident: $transaction:ty, $($param:ident: $ty:ty),*) -> $result:ty
        $body:block
    ) => {
        $(#[$attribute])*
        $visibility async fn $name($tx: $transaction, $($param: $ty),*) -> $result $body
    };
}

given! {
    /// Documented.
    #[idempotent(key(msg.id), scope = "given")]
    fn given(db: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<i64> {
        sqlx::query("SELECT 1").execute(&mut **db).await?;
        Ok(msg.id)
    }
}

/// The key is the macro's, the parameter the caller's; and the other way round.
macro_rules! mixed {
    ($name:ident, $param:ident, $body:expr) => {
        #[idempotent(key = "msg.id, msg.channel", scope = "macros_key")]
        async fn $name(tx: &mut Transaction<'_, Sqlite>, $param: &Msg) -> sqlx::Result<i64> {
            sqlx::query("SELECT 1").execute(&mut **tx).await?;
            Ok($body)
        }
    };
    ($name:ident, $key:literal, $scope:literal) => {
        #[idempotent(key = $key, scope = $scope)]
        async fn $name(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<i64> {
            sqlx::query("SELECT 1").execute(&mut **tx).await?;
            Ok(msg.id)
        }
    };
    ($name:ident, [$($part:expr),*], $tx:ident, $claim:ident, $scope:expr, $body:block) => {
        #[idempotent(key($($part),*), scope = $scope, tx = $tx, bind = $claim)]
        async fn $name($tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<usize> $body
    };
}

mixed!(macros_key, msg, msg.id);
mixed!(callers_key, "msg.id, msg.channel", "callers_key");
mixed!(
    callers_parts,
    [msg.id, stable(msg.channel.len() + 1)],
    db,
    claim,
    "callers_parts",
    {
        sqlx::query("SELECT 1").execute(&mut **db).await?;
        Ok(claim.key().len())
    }
);

macro_rules! service {
    ($name:ident, $field:ident) => {
        struct $name {
            $field: i64,
        }

        impl $name {
            #[idempotent(key = "self.tenant, id", scope = "macros_self")]
            async fn by_reference(
                &self,
                tx: &mut Transaction<'_, Sqlite>,
                id: i64,
            ) -> sqlx::Result<i64> {
                sqlx::query("SELECT 1").execute(&mut **tx).await?;
                Ok(self.$field)
            }

            #[idempotent(key(self.$field), scope = "macros_mut_self")]
            async fn by_mut(
                mut self: Box<Self>,
                tx: &mut Transaction<'_, Sqlite>,
            ) -> sqlx::Result<Box<Self>> {
                sqlx::query("SELECT 1").execute(&mut **tx).await?;
                self.$field += 1;
                Ok(self)
            }
        }
    };
}

service!(Service, tenant);

#[tokio::test]
async fn from_macros() {
    let mut tx = begin().await;
    delivered!(tx, "own_quoted" => "7/8", own_quoted(&mut tx, &msg()));
    delivered!(tx, "own_unquoted" => "7/8", own_unquoted(&mut tx, msg()));
    delivered!(tx, "given" => "7", given(&mut tx, &msg()));
    delivered!(tx, "macros_key" => "7/push", macros_key(&mut tx, &msg()));
    delivered!(tx, "callers_key" => "7/push", callers_key(&mut tx, &msg()));
    delivered!(tx, "callers_parts" => "7/5", callers_parts(&mut tx, &msg()));
    let service = Service { tenant: 3 };
    delivered!(tx, "macros_self" => "3/7", service.by_reference(&mut tx, 7));
    delivered!(tx, "macros_mut_self" => "3", Box::new(Service { tenant: 3 }).by_mut(&mut tx));
}
