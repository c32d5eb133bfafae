//! A place of its own for each run.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use sqlx::Pool;
use sqlx::pool::PoolOptions;

use crate::{Failed, Server};

/// Schemas of the program's own on a server, which are gone afterwards.
#[derive(Debug)]
pub struct Place<DB: Server> {
    url: String,
    /// The first part of the schemas' names.
    name: String,
    schemas: Vec<String>,
    pools: Vec<Pool<DB>>,
}

impl<DB: Server> Place<DB> {
    /// Makes a schema, and connects to it.
    ///
    /// # Errors
    ///
    /// What the server answers.
    pub async fn schema(&mut self, name: &str, connections: u32) -> Result<Pool<DB>, Failed> {
        let pool = PoolOptions::new().max_connections(connections);
        let [pool] = self.schema_with(name, [pool]).await?;
        Ok(pool)
    }

    /// Makes a schema, and connects to it with pools of these options.
    ///
    /// # Errors
    ///
    /// What the server answers.
    pub async fn schema_with<const N: usize>(
        &mut self,
        name: &str,
        pools: [PoolOptions<DB>; N],
    ) -> Result<[Pool<DB>; N], Failed> {
        let schema = format!("{}_{name}", self.name);
        let options = DB::create_schema(&self.url, &schema).await?;
        eprintln!("schema {schema}");
        self.schemas.push(schema);
        let pools = pools.map(|pool| pool.connect_lazy_with(options.clone()));
        self.pools.extend(pools.iter().cloned());
        Ok(pools)
    }

    async fn leave(self) -> Result<(), Failed> {
        for pool in self.pools {
            pool.close().await;
        }
        for schema in self.schemas {
            DB::drop_schema(&self.url, &schema).await?;
        }
        Ok(())
    }
}

/// Works on a server, in schemas that are dropped afterwards, also when the work
/// fails, panics or is interrupted.
///
/// # Errors
///
/// Those of the work, and then of cleaning up.
pub async fn on_server<DB: Server>(
    url: &str,
    program: &str,
    work: impl AsyncFnOnce(&mut Place<DB>) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let mut place = Place {
        url: url.to_owned(),
        name: format!("{program}_{}", std::process::id()),
        schemas: Vec::new(),
        pools: Vec::new(),
    };
    let worked = tokio::select! {
        worked = caught(work(&mut place)) => worked,
        () = interrupted() => Err("interrupted".into()),
    };
    let left = place.leave().await;
    worked.and(left)
}

/// Makes an error of a panic, as of a standard output that was closed.
async fn caught(work: impl Future<Output = Result<(), Failed>>) -> Result<(), Failed> {
    let mut work = pin!(work);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        polled.unwrap_or_else(|_| Poll::Ready(Err("the program panicked".into())))
    })
    .await
}

/// Waits for a signal to end.
async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// Runs statements.
///
/// # Errors
///
/// What the database answers.
pub async fn run<DB: Server>(pool: &Pool<DB>, sql: &str) -> sqlx::Result<()> {
    DB::run(&mut *pool.acquire().await?, sql).await
}

/// Returns the one number that a query gives.
///
/// # Errors
///
/// What the database answers.
pub async fn number<DB: Server>(pool: &Pool<DB>, sql: &str) -> sqlx::Result<i64> {
    DB::number(&mut *pool.acquire().await?, sql).await
}
