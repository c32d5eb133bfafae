//! A primary with one standby.

use std::time::Duration;

use idempotent_tests::{Engine, until};
use sqlx::pool::PoolOptions;
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::{ConnectOptions, Postgres};
use tokio::runtime::Builder;
use xtask::servers::{Pair, ThrowAway};

use crate::switch::Switch;
use crate::tables;

/// What a commit waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Following {
    /// Nothing: the standby gets it later.
    Asynchronous,
    /// The standby has it on its disk: `synchronous_commit = on`, which is the default.
    Written,
    /// The standby shows it to readers: `synchronous_commit = remote_apply`.
    Applied,
}

/// The two servers, with the tables of the tests.
pub struct Replicated {
    pair: Pair,
    switch: Switch,
}

/// Runs a test on a primary and a standby of its own.
///
/// # Panics
///
/// With the test, or if there are no servers to be had.
pub fn on_replicated(following: Following, test: impl AsyncFnOnce(&mut Replicated)) {
    let pair = Pair::start().unwrap_or_else(|error| panic!("{error}"));
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(4).enable_all().build();
    runtime.expect("the runtime starts").block_on(async {
        let switch = Switch::start(pair.primary.address()).await;
        let mut replicated = Replicated { pair, switch };
        replicated.follow(following).await;
        tables::prepare(&replicated.pool()).await;
        test(&mut replicated).await;
    });
}

impl Replicated {
    /// Connections to whichever server is the primary.
    #[must_use]
    pub fn pool(&self) -> PgPool {
        let options = options(&self.pair.primary).port(self.switch.port());
        PoolOptions::new()
            .max_connections(20)
            .acquire_timeout(Duration::from_secs(30))
            .connect_lazy_with(options)
    }

    /// Connections to the standby, whether promoted or not.
    #[must_use]
    pub fn standby(&self) -> PgPool {
        PoolOptions::new().connect_lazy_with(options(&self.pair.standby))
    }

    async fn number_on_primary(&self, query: &str) -> i64 {
        number(&self.pair.primary, query).await
    }

    /// Waits until the standby has all that the primary has committed.
    pub async fn until_standby_has_all(&self) {
        const HAS_ALL: &str =
            "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()";
        until("the standby has caught up", async || {
            self.number_on_primary(HAS_ALL).await == 1
        })
        .await;
    }

    /// Waits until so many commits wait for the standby.
    pub async fn until_commits_wait(&self, commits: usize) {
        self.until_sessions_wait("wait_event = 'SyncRep'", commits)
            .await;
    }

    /// Waits until so many claims wait for another transaction.
    pub async fn until_claims_wait(&self, claims: usize) {
        self.until_sessions_wait("wait_event_type = 'Lock'", claims)
            .await;
    }

    async fn until_sessions_wait(&self, condition: &str, sessions: usize) {
        let waiting = format!("SELECT count(*) FROM pg_stat_activity WHERE {condition}");
        until("sessions wait", async || {
            usize::try_from(self.number_on_primary(&waiting).await) == Ok(sessions)
        })
        .await;
    }

    /// Cuts the standby off, as a network does.
    pub async fn cut_standby_off(&self) {
        let nobody = "ALTER SYSTEM SET primary_conninfo = ''";
        run(&self.pair.standby, &[nobody, RELOAD]).await;
        until("the standby is cut off", async || {
            self.number_on_primary("SELECT count(*) FROM pg_stat_replication")
                .await
                == 0
        })
        .await;
    }

    /// Kills the primary with all its processes.
    pub fn crash_primary(&mut self) {
        self.pair.primary.crash();
    }

    /// Starts the primary again after a crash.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn restart_primary(&mut self) {
        let restarted = self.pair.primary.restart();
        restarted.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Makes the standby the primary, and turns new connections to it.
    pub async fn promote(&mut self) {
        run(&self.pair.standby, &["SELECT pg_promote()"]).await;
        self.switch.turn_to(self.pair.standby.address());
    }

    /// Has the standby follow the primary.
    async fn follow(&self, following: Following) {
        let primary = self.pair.primary.address().port();
        let conninfo = format!(
            "ALTER SYSTEM SET primary_conninfo = 'host=127.0.0.1 port={primary} user=postgres'"
        );
        run(&self.pair.standby, &[&conninfo, RELOAD]).await;
        let (synchronous, wait) = match following {
            Following::Asynchronous => (false, "on"),
            Following::Written => (true, "on"),
            Following::Applied => (true, "remote_apply"),
        };
        let names = if synchronous { "*" } else { "" };
        let names = format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'");
        let wait = format!("ALTER SYSTEM SET synchronous_commit = '{wait}'");
        run(&self.pair.primary, &[&names, &wait, RELOAD]).await;
        let state = if synchronous { "sync" } else { "async" };
        let follows = format!(
            "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = '{state}'"
        );
        until("the standby follows", async || {
            self.number_on_primary(&follows).await == 1
        })
        .await;
    }
}

const RELOAD: &str = "SELECT pg_reload_conf()";

fn options(server: &ThrowAway) -> PgConnectOptions {
    server.url().parse().expect("a url")
}

async fn run(server: &ThrowAway, statements: &[&str]) {
    let mut conn = options(server).connect().await.expect("it answers");
    for statement in statements {
        let done = Postgres::run(&mut conn, statement).await;
        done.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

async fn number(server: &ThrowAway, query: &str) -> i64 {
    let mut conn = options(server).connect().await.expect("it answers");
    let number = Postgres::number(&mut conn, query).await;
    number.unwrap_or_else(|error| panic!("{query}: {error}"))
}
