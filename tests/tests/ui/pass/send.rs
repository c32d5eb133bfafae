//! Futures that are `Send` wherever a hand-written handler's would be.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use idempotent_runtime::{KeyPart, Outcome, Store, idempotent, transact};
use sqlx::{Pool, Sqlite, Transaction};

use super::{AppError, Msg, msg, pool};

type Done = Result<(), AppError>;

/// `Send`, but not `Sync`.
struct Counted {
    id: i64,
    count: Cell<u8>,
}

fn counted() -> Counted {
    Counted {
        id: 7,
        count: Cell::new(0),
    }
}

#[idempotent(key(msg.id), scope = "concrete")]
async fn concrete(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> Done {
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    Ok(())
}

#[idempotent(key(msg), scope = "generic", guard = "savepoint")]
async fn generic<DB: Store, M: KeyPart + Send>(tx: &mut Transaction<'_, DB>, msg: M) -> Done {
    std::future::ready(()).await;
    drop(msg);
    Ok(())
}

#[idempotent(key(msg.id), scope = "cell_by_value", bind = claim)]
async fn cell_by_value(tx: &mut Transaction<'_, Sqlite>, msg: Counted) -> Done {
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    msg.count
        .set(u8::try_from(claim.key().len()).unwrap_or_default());
    Ok(())
}

#[idempotent(key(msg.id), scope = "cell_by_mut")]
async fn cell_by_mut(tx: &mut Transaction<'_, Sqlite>, msg: &mut Counted) -> Done {
    msg.count.set(1);
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    msg.count.set(2);
    Ok(())
}

#[idempotent(key(lock.lock().unwrap().id), scope = "mutex")]
async fn mutex(tx: &mut Transaction<'_, Sqlite>, lock: &Mutex<Msg>) -> Done {
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    lock.lock().unwrap().id += 1;
    Ok(())
}

#[idempotent(key = "msg.borrow().id", scope = "ref_cell")]
async fn ref_cell(tx: &mut Transaction<'_, Sqlite>, msg: RefCell<Msg>) -> Done {
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    msg.borrow_mut().id += 1;
    Ok(())
}

#[async_trait]
trait Object: Send + Sync {
    async fn handle(
        &self,
        tx: &mut Transaction<'_, Sqlite>,
        msg: Counted,
    ) -> Result<Outcome<()>, AppError>;
}

trait Promised {
    fn handle<DB: Store>(
        &self,
        tx: &mut Transaction<'_, DB>,
        msg: &Msg,
    ) -> impl Future<Output = Result<Outcome<()>, AppError>> + Send;
}

struct Service;

#[async_trait]
impl Object for Service {
    #[idempotent(key(msg.id), scope = "object")]
    async fn handle(&self, tx: &mut Transaction<'_, Sqlite>, msg: Counted) -> Done {
        sqlx::query("SELECT 1").execute(&mut **tx).await?;
        msg.count.set(1);
        Ok(())
    }
}

impl Promised for Service {
    #[idempotent(key(msg.id), scope = "promised")]
    async fn handle<DB: Store>(&self, tx: &mut Transaction<'_, DB>, msg: &Msg) -> Done {
        std::future::ready(()).await;
        Ok(())
    }
}

async fn spawned_generic<DB: Store>(pool: Pool<DB>) -> Result<Outcome<()>, AppError> {
    let task = async move {
        let mut tx = pool.begin().await?;
        let outcome = generic(&mut tx, 7).await?;
        tx.commit().await?;
        Ok(outcome)
    };
    tokio::spawn(task).await.unwrap()
}

#[tokio::test]
async fn spawned() {
    let pool = pool().await;
    assert_eq!(
        spawned_generic(pool.clone()).await.unwrap(),
        Outcome::Processed(())
    );

    let object: Arc<dyn Object> = Arc::new(Service);
    let task = tokio::spawn(async move {
        let (msg, mut by_mut) = (msg(), counted());
        let mut tx = pool.begin().await?;
        let outcomes = [
            concrete(&mut tx, &msg).await?,
            generic(&mut tx, 8).await?,
            cell_by_value(&mut tx, counted()).await?,
            cell_by_mut(&mut tx, &mut by_mut).await?,
            mutex(&mut tx, &Mutex::new(msg.clone())).await?,
            ref_cell(&mut tx, RefCell::new(msg.clone())).await?,
            object.handle(&mut tx, counted()).await?,
            Promised::handle(&Service, &mut tx, &msg).await?,
        ];
        tx.commit().await?;
        let again = transact!(&pool, tx => concrete(tx, &msg)).await?;
        Ok::<_, AppError>((outcomes, again))
    });
    let (outcomes, again) = task.await.unwrap().unwrap();
    assert_eq!(outcomes, [Outcome::Processed(()); 8]);
    assert_eq!(again, Outcome::Duplicate);
}
