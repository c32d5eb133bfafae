//! Three nodes that all take writes.

use std::time::Duration;

use idempotent_tests::{Engine, until};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::pool::PoolOptions;
use sqlx::{ConnectOptions, Executor, MySql, MySqlPool};
use tokio::runtime::Builder;
use xtask::servers::Galera;

use crate::tables;

/// A node that comes back copies what the others have: that takes a while on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// Transactions begin when the node has what was committed before.
const CAUSAL: &str = "SET SESSION wsrep_sync_wait = 1";
/// Each statement of a transaction is told to the other nodes at once.
const STREAMING: &str =
    "SET SESSION wsrep_trx_fragment_unit = 'statements', wsrep_trx_fragment_size = 1";

/// The nodes, with the tables of the tests.
pub struct Nodes {
    cluster: Galera,
    options: [MySqlConnectOptions; 3],
    observers: [MySqlPool; 3],
}

/// Runs a test on a cluster of its own.
///
/// # Panics
///
/// With the test, or if there is no cluster to be had.
pub fn on_galera(test: impl AsyncFnOnce(&mut Nodes)) {
    let cluster = Galera::start().unwrap_or_else(|error| panic!("{error}"));
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(4).enable_all().build();
    runtime.expect("the runtime starts").block_on(async {
        let mut nodes = Nodes::new(cluster);
        for node in 0..3 {
            nodes.until_ready(node).await;
        }
        tables::prepare(&nodes.pool(0)).await;
        for node in 1..3 {
            nodes.until_applied(node).await;
        }
        test(&mut nodes).await;
    });
}

impl Nodes {
    fn new(cluster: Galera) -> Self {
        let options = cluster.urls().map(|url| url.parse().expect("a url"));
        let observers = options.clone().map(|node| pool_after(CAUSAL, node));
        Self {
            cluster,
            options,
            observers,
        }
    }

    /// Connections to a node as most users have them.
    #[must_use]
    pub fn pool(&self, node: usize) -> MySqlPool {
        pool_options().connect_lazy_with(self.options[node].clone())
    }

    /// Connections to a node that tells the others of each statement at once.
    #[must_use]
    pub fn streaming_pool(&self, node: usize) -> MySqlPool {
        pool_after(STREAMING, self.options[node].clone())
    }

    /// Connections of a consumer that does not wait long for a node that is not there.
    #[must_use]
    pub fn impatient_pool(&self, node: usize) -> MySqlPool {
        pool_options()
            .acquire_timeout(Duration::from_secs(1))
            .connect_lazy_with(self.options[node].clone())
    }

    /// Connections to a node whose transactions see all that any node has committed before.
    #[must_use]
    pub fn observer(&self, node: usize) -> &MySqlPool {
        &self.observers[node]
    }

    /// Waits until a node has what the others have committed.
    pub async fn until_applied(&self, node: usize) {
        tables::keys(self.observer(node)).await;
    }

    /// Waits until a statement like this one waits at a node.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub async fn until_held(&self, node: usize, statement: &str) {
        let held = format!(
            "SELECT count(*) FROM information_schema.processlist \
             WHERE command = 'Query' AND info LIKE '{statement}' AND time_ms > 200"
        );
        let mut conn = self.connect(node).await;
        until("the statement waits", async || {
            MySql::number(&mut conn, &held).await.expect("a number") == 1
        })
        .await;
    }

    /// Returns a number that a node tells of itself.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub async fn status(&self, node: usize, name: &str) -> i64 {
        let status = format!(
            "SELECT CAST(variable_value AS signed) FROM information_schema.global_status \
             WHERE variable_name = '{name}'"
        );
        let mut conn = self.connect(node).await;
        MySql::number(&mut conn, &status).await.expect("a number")
    }

    async fn connect(&self, node: usize) -> MySqlConnection {
        let conn = self.options[node].connect().await;
        conn.expect("the node answers")
    }

    /// Kills a node.
    pub fn crash(&mut self, node: usize) {
        self.cluster.crash(node);
    }

    /// Starts a node again, and waits until it takes part.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub async fn rejoin(&mut self, node: usize) {
        let rejoined = self.cluster.rejoin(node);
        rejoined.unwrap_or_else(|error| panic!("{error}"));
        self.until_ready(node).await;
    }

    /// Waits until a node takes part in the cluster.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub async fn until_ready(&self, node: usize) {
        const READY: &str = "SELECT count(*) FROM information_schema.global_status \
             WHERE variable_name = 'WSREP_READY' AND variable_value = 'ON'";
        let is_ready = async || {
            let Ok(mut conn) = self.options[node].connect().await else {
                return false;
            };
            matches!(MySql::number(&mut conn, READY).await, Ok(1))
        };
        let ready = async {
            while !is_ready().await {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let ready = tokio::time::timeout(PATIENCE, ready).await;
        ready.expect("the node is ready");
    }
}

fn pool_options() -> PoolOptions<MySql> {
    PoolOptions::new()
        .max_connections(20)
        .acquire_timeout(Duration::from_secs(30))
}

fn pool_after(set: &'static str, options: MySqlConnectOptions) -> MySqlPool {
    let pool = pool_options().after_connect(move |conn: &mut MySqlConnection, _| {
        Box::pin(async move { conn.execute(set).await.map(drop) })
    });
    pool.connect_lazy_with(options)
}
