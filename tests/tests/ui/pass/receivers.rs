//! Methods, with every form of `self`; trait methods; `#[async_trait]`.

#![allow(
    clippy::needless_arbitrary_self_type,
    reason = "that, too, is a form of `self`"
)]

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use idempotent_runtime::{KeyPart, Outcome, Store, idempotent};
use sqlx::{Sqlite, Transaction};

use super::{AppError, Msg, begin, delivered, msg};

#[derive(Clone)]
struct Service {
    tenant: String,
    count: u32,
}

fn service() -> Service {
    Service {
        tenant: "acme".to_owned(),
        count: 0,
    }
}

impl Service {
    const ONE: u32 = 1;

    #[idempotent(key(self.tenant, msg.id), scope = "by_reference")]
    async fn by_reference(&self, tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<u32> {
        Ok(self.count + Self::ONE)
    }

    #[idempotent(key = "self.tenant, msg.id", scope = "by_mut")]
    async fn by_mut(&mut self, tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<u32> {
        self.count += Self::ONE;
        let Self { tenant, count } = self;
        tenant.push('!');
        Ok(*count)
    }

    #[idempotent(key(self.tenant, msg.id), scope = "by_value")]
    async fn by_value(self, tx: &mut Transaction<'_, Sqlite>, msg: Msg) -> sqlx::Result<Self> {
        Ok(Self { count: 1, ..self })
    }

    #[idempotent(key(self.tenant, msg.id), scope = "by_mut_value")]
    async fn by_mut_value(
        mut self,
        tx: &mut Transaction<'_, Sqlite>,
        msg: Msg,
    ) -> sqlx::Result<String> {
        self.tenant.push('!');
        Ok(self.tenant)
    }

    #[idempotent(key(self.tenant, msg.id), scope = "typed")]
    async fn typed(self: &Self, tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<u32> {
        Ok(self.count)
    }

    #[idempotent(key(self.tenant, msg.id), scope = "shared")]
    async fn shared(
        self: Arc<Self>,
        tx: &mut Transaction<'_, Sqlite>,
        msg: Msg,
    ) -> sqlx::Result<Arc<Self>> {
        Ok(self)
    }

    #[idempotent(key(self.tenant, msg.id), scope = "boxed")]
    async fn boxed(
        mut self: Box<Self>,
        tx: &mut Transaction<'_, Sqlite>,
        msg: Msg,
    ) -> sqlx::Result<u32> {
        self.count += 1;
        Ok(self.count)
    }

    #[idempotent(key(self.tenant, msg.id), scope = "pinned")]
    async fn pinned(
        self: Pin<&mut Self>,
        tx: &mut Transaction<'_, Sqlite>,
        msg: &Msg,
    ) -> sqlx::Result<u32> {
        self.get_mut().count += 1;
        Ok(1)
    }

    #[idempotent(key(msg.id), scope = "associated")]
    async fn associated(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<Self> {
        Ok(service())
    }
}

#[tokio::test]
async fn methods() {
    let (mut tx, msg) = (begin().await, msg());
    let it = service();
    delivered!(tx, "by_reference" => "acme/7", it.by_reference(&mut tx, &msg));
    delivered!(tx, "by_mut" => "acme/7", service().by_mut(&mut tx, &msg));
    delivered!(tx, "by_value" => "acme/7", service().by_value(&mut tx, msg.clone()));
    delivered!(tx, "by_mut_value" => "acme/7", service().by_mut_value(&mut tx, msg.clone()));
    delivered!(tx, "typed" => "acme/7", it.typed(&mut tx, &msg));
    delivered!(tx, "shared" => "acme/7", Arc::new(service()).shared(&mut tx, msg.clone()));
    delivered!(tx, "boxed" => "acme/7", Box::new(service()).boxed(&mut tx, msg.clone()));
    delivered!(tx, "pinned" => "acme/7", Pin::new(&mut service()).pinned(&mut tx, &msg));
    delivered!(tx, "associated" => "7", Service::associated(&mut tx, &msg));
}

struct Generic<M>(M);

impl<M: KeyPart + Sync> Generic<M> {
    #[idempotent(key(self.0), scope = "of_a_generic_type")]
    async fn handle<DB: Store>(&self, tx: &mut Transaction<'_, DB>) -> sqlx::Result<&M> {
        Ok(&self.0)
    }
}

/// The trait writes the outward type, its implementations the handler's.
trait Handle {
    async fn handle(
        &self,
        tx: &mut Transaction<'_, Sqlite>,
        msg: &Msg,
    ) -> Result<Outcome<u32>, AppError>;

    #[idempotent(key(msg.id), scope = "default_method")]
    async fn or_default(
        &self,
        tx: &mut Transaction<'_, Sqlite>,
        msg: &Msg,
    ) -> Result<u32, AppError> {
        Ok(1)
    }
}

impl Handle for Service {
    #[idempotent(key(msg.id), scope = "trait_method")]
    async fn handle(&self, tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> Result<u32, AppError> {
        Ok(self.count)
    }
}

trait HandleSend {
    fn handle(
        &self,
        tx: &mut Transaction<'_, Sqlite>,
        msg: &Msg,
    ) -> impl Future<Output = Result<Outcome<u32>, AppError>> + Send;
}

impl HandleSend for Service {
    #[idempotent(key(msg.id), scope = "send_trait_method")]
    async fn handle(&self, tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> Result<u32, AppError> {
        Ok(self.count)
    }
}

#[tokio::test]
async fn trait_methods() {
    let (mut tx, msg) = (begin().await, msg());
    let it = service();
    delivered!(tx, "of_a_generic_type" => "5", Generic(5).handle(&mut tx));
    delivered!(tx, "trait_method" => "7", Handle::handle(&it, &mut tx, &msg));
    delivered!(tx, "default_method" => "7", it.or_default(&mut tx, &msg));
    delivered!(tx, "send_trait_method" => "7", HandleSend::handle(&it, &mut tx, &msg));
}

#[async_trait]
trait Object: Send + Sync {
    async fn handle(
        &self,
        tx: &mut Transaction<'_, Sqlite>,
        msg: &Msg,
        other: Msg,
    ) -> Result<Outcome<usize>, AppError>;

    #[idempotent(key(msg.id), scope = "async_trait_default")]
    async fn or_default(
        &mut self,
        tx: &mut Transaction<'_, Sqlite>,
        mut msg: Msg,
    ) -> Result<i64, AppError> {
        msg.id += 1;
        Ok(msg.id)
    }
}

#[async_trait]
impl Object for Service {
    #[idempotent(key(self.tenant, msg.id, other.id), scope = "async_trait", bind = claim)]
    async fn handle(
        &self,
        tx: &mut Transaction<'_, Sqlite>,
        msg: &Msg,
        mut other: Msg,
    ) -> Result<usize, AppError> {
        other.id += 1;
        let channel: usize = msg.channel.parse()?;
        if channel < 2 {
            return Ok(channel);
        }
        sqlx::query("SELECT 1").execute(&mut **tx).await?;
        Ok(claim.key().len() + self.tenant.len())
    }
}

#[async_trait(?Send)]
trait LocalObject {
    async fn local(&self, tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<Outcome<i64>>;
}

#[async_trait(?Send)]
impl LocalObject for Service {
    #[idempotent(key(id), scope = "local_async_trait")]
    async fn local(&self, tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<i64> {
        Ok(id)
    }
}

#[tokio::test]
async fn async_trait_methods() {
    let (mut tx, msg) = (begin().await, msg());
    let mut it: Box<dyn Object> = Box::new(service());
    delivered!(tx, "async_trait" => "acme/7/7", it.handle(&mut tx, &msg, msg.clone()));
    delivered!(tx, "async_trait_default" => "7", it.or_default(&mut tx, msg.clone()));
    let it: &dyn LocalObject = &service();
    delivered!(tx, "local_async_trait" => "5", it.local(&mut tx, 5));
}
