//! A database of its own for each test.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use idempotent_runtime::migrate;
use sqlx::pool::PoolOptions;
use sqlx::{Connection, Pool};
use tokio::runtime::{Builder, Runtime};

use crate::engine::{Engine, Kind, until};

/// An empty database, and a connection that looks on.
#[derive(Debug)]
pub struct Fresh<DB: Engine> {
    /// How to connect to it.
    pub options: <DB::Connection as Connection>::Options,
    /// Sees what is committed, and nothing else: no test works on it.
    pub observer: Pool<DB>,
}

/// Runs a test on a fresh database, and drops the database, also when the test
/// panics.
///
/// # Panics
///
/// With the test, or if there is no such server.
pub fn in_fresh_database<DB: Engine>(test: impl AsyncFnOnce(&Fresh<DB>)) {
    let name = unique_name();
    let runtime = runtime();
    let tested = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            let options = DB::create_database(&name)
                .await
                .expect("the database is made");
            let observer = PoolOptions::new()
                .max_connections(2)
                .connect_lazy_with(options.clone());
            let fresh = Fresh { options, observer };
            test(&fresh).await;
        });
    }));
    // Sockets are closed before the database is dropped.
    runtime.shutdown_timeout(Duration::from_secs(5));
    let dropped = self::runtime().block_on(DB::drop_database(&name));
    if let Err(panic) = tested {
        resume_unwind(panic);
    }
    dropped.expect("the database is dropped");
}

impl<DB: Engine> Fresh<DB> {
    /// A pool as most users have it, on the bare database.
    pub async fn pool(&self, size: u32) -> Pool<DB> {
        self.pool_with(PoolOptions::new().max_connections(size))
            .await
    }

    /// A pool that prepares each statement anew, every time.
    ///
    /// # Panics
    ///
    /// If it cannot connect.
    pub async fn pool_that_prepares_anew(&self, size: u32) -> Pool<DB> {
        PoolOptions::new()
            .max_connections(size)
            .connect_with(DB::without_statement_cache(&self.options))
            .await
            .expect("the pool connects")
    }

    /// A pool on the bare database.
    ///
    /// # Panics
    ///
    /// If it cannot connect.
    pub async fn pool_with(&self, options: PoolOptions<DB>) -> Pool<DB> {
        options
            .acquire_timeout(Duration::from_mins(1))
            .connect_with(self.options.clone())
            .await
            .expect("the pool connects")
    }

    /// Makes the keys' table and those of the effects; gives a pool.
    pub async fn prepared(&self, size: u32) -> Pool<DB> {
        self.prepare().await;
        self.pool(size).await
    }

    /// Makes the keys' table and those of the effects.
    ///
    /// # Panics
    ///
    /// If it cannot.
    pub async fn prepare(&self) {
        migrate(&self.observer).await.expect("the table is made");
        for sql in [
            "CREATE TABLE effects (id varchar(300) NOT NULL, run bigint)",
            "CREATE TABLE letters (id varchar(300) NOT NULL)",
            "CREATE TABLE accounts (id int PRIMARY KEY, amount int NOT NULL)",
            "INSERT INTO accounts (id, amount) VALUES (1, 0), (2, 0)",
        ] {
            self.run(sql).await;
        }
    }

    /// Runs statements outside the test's transactions.
    ///
    /// # Panics
    ///
    /// If they fail.
    pub async fn run(&self, sql: &str) {
        let mut conn = self
            .observer
            .acquire()
            .await
            .expect("the observer connects");
        if let Err(error) = DB::run(&mut conn, sql).await {
            panic!("{sql}: {error}");
        }
    }

    /// Returns the one number that a query gives.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub async fn number(&self, sql: &str) -> i64 {
        let mut conn = self
            .observer
            .acquire()
            .await
            .expect("the observer connects");
        match DB::number(&mut conn, sql).await {
            Ok(number) => number,
            Err(error) => panic!("{sql}: {error}"),
        }
    }

    /// Returns the first column that a query gives.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub async fn texts(&self, sql: &str) -> Vec<String> {
        let mut conn = self
            .observer
            .acquire()
            .await
            .expect("the observer connects");
        match DB::texts(&mut conn, sql).await {
            Ok(texts) => texts,
            Err(error) => panic!("{sql}: {error}"),
        }
    }

    /// Counts the committed keys and effects of a message.
    pub async fn stored(&self, id: &str) -> (i64, i64) {
        let column = self.key_column();
        let keys = format!("SELECT count(*) FROM processed_messages WHERE {column} = '{id}'");
        let effects = format!("SELECT count(*) FROM effects WHERE id = '{id}'");
        (self.number(&keys).await, self.number(&effects).await)
    }

    /// Counts the committed rows of a table.
    pub async fn rows(&self, table: &str) -> i64 {
        self.number(&format!("SELECT count(*) FROM {table}")).await
    }

    /// The column `key`, which is a reserved word on MariaDB.
    #[must_use]
    pub fn key_column(&self) -> &'static str {
        if DB::KIND == Kind::MariaDb {
            "`key`"
        } else {
            "key"
        }
    }

    /// Waits until that many sessions wait for a lock, where the database can
    /// tell.
    pub async fn until_waiting(&self, sessions: i64) {
        if let Some(waiting) = DB::WAITING {
            until("sessions wait for a lock", async || {
                self.number(waiting).await >= sessions
            })
            .await;
        }
    }

    /// Waits until no session has a transaction open.
    pub async fn until_idle(&self) {
        until("no transaction is open", async || {
            self.number(DB::OPEN).await == 0
        })
        .await;
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("the runtime starts")
}

fn unique_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis());
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("idempotent_test_{}_{now}_{next}", std::process::id())
}
