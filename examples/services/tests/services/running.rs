//! A program of this package, started as a person starts it.

#![allow(dead_code, reason = "the tests of one broker use a part of it")]

use std::env;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, query_scalar};

/// A database of its own, gone in the end, and a name that no other test has.
pub(crate) struct Fresh {
    pub(crate) name: String,
    pub(crate) pool: PgPool,
}

/// Runs a test with a database of its own.
pub(crate) fn in_fresh_database(test: impl AsyncFnOnce(&Fresh)) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let server: PgConnectOptions = server("POSTGRES").parse().unwrap();
        let name = unique();
        let mut admin = server.connect().await.unwrap();
        let create = format!("CREATE DATABASE {name}");
        admin.execute(AssertSqlSafe(create)).await.unwrap();
        let pool = PgPool::connect_with(server.database(&name)).await.unwrap();
        let fresh = Fresh { name, pool };
        let outcome = tokio::task::LocalSet::new()
            .run_until(async {
                use futures_util::FutureExt as _;
                std::panic::AssertUnwindSafe(test(&fresh))
                    .catch_unwind()
                    .await
            })
            .await;
        fresh.pool.close().await;
        let drop = format!("DROP DATABASE {} WITH (FORCE)", fresh.name);
        admin.execute(AssertSqlSafe(drop)).await.unwrap();
        admin.close().await.unwrap();
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
}

/// The URL of a server that the test needs.
pub(crate) fn server(kind: &str) -> String {
    env::var(format!("IDEMPOTENT_{kind}_URL")).expect("the test is not run without it")
}

fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!(
        "services_{}_{}_{number}",
        std::process::id(),
        time.as_millis()
    )
}

impl Fresh {
    pub(crate) fn url(&self) -> String {
        self.pool.connect_options().to_url_lossy().to_string()
    }

    pub(crate) async fn number(&self, sql: &'static str) -> i64 {
        query_scalar(sql).fetch_one(&self.pool).await.unwrap()
    }

    pub(crate) async fn run(&self, sql: &'static str) {
        self.pool.execute(sql).await.unwrap();
    }

    /// Waits until Postgres knows that a program was killed: a commit may still be under way.
    pub(crate) async fn until_idle(&self) {
        let busy = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
             AND pid <> pg_backend_pid() AND state <> 'idle'";
        until("nothing is under way", async || {
            self.number(busy).await == 0
        })
        .await;
    }

    /// A program on this database.
    pub(crate) fn program(&self, path: &str, broker: &str) -> Command {
        let mut command = Command::new(path);
        command.args(["--database", &self.url(), "--broker", broker]);
        command.args(["--name", &self.name]);
        command
    }
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + Duration::from_mins(1);
    while !is_so().await {
        assert!(Instant::now() < end, "not within a minute: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A program that runs. Dropped, it is killed.
pub(crate) struct Running {
    child: Child,
    said: BufReader<ChildStdout>,
    /// If the command has a pipe for them.
    complaints: Option<BufReader<ChildStderr>>,
}

impl Running {
    /// Starts it, and waits until it says that it is ready.
    pub(crate) fn start(mut command: Command, ready: &str) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let complaints = child.stderr.take().map(BufReader::new);
        let mut running = Self {
            child,
            said,
            complaints,
        };
        running.says(ready);
        running
    }

    /// Waits until it says that.
    pub(crate) fn says(&mut self, word: &str) {
        while !self.line().expect(word).starts_with(word) {}
    }

    /// Waits until it complains of that.
    pub(crate) fn complains(&mut self, word: &str) {
        let complaints = self.complaints.as_mut().expect("there is a pipe");
        let mut line = String::new();
        while !line.contains(word) {
            line.clear();
            assert!(complaints.read_line(&mut line).unwrap() > 0, "{word}");
        }
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let length = self.said.read_line(&mut line).unwrap();
        (length > 0).then(|| line.trim_end().to_owned())
    }

    /// Stops it as a supervisor does, and returns its last line.
    pub(crate) fn stop(mut self) -> String {
        let pid = self.child.id().to_string();
        let kill = Command::new("kill").args(["-s", "TERM", &pid]).status();
        assert!(kill.unwrap().success());
        let mut last = String::new();
        while let Some(line) = self.line() {
            last = line;
        }
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}, after `{last}`");
        last
    }

    /// Kills it as a crash would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it ends by itself.
    pub(crate) fn ended(mut self) -> ExitStatus {
        while self.line().is_some() {}
        self.child.wait().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The last line of a program.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) processed: u64,
    pub(crate) duplicates: u64,
}

/// Reads it.
pub(crate) fn counts(last: &str) -> Counts {
    let count = |name: &str| {
        let words = last.split(' ');
        let mut counts = words.filter_map(|word| word.split_once('='));
        let (_, count) = counts.find(|(word, _)| *word == name).expect(last);
        count.parse().expect(last)
    };
    Counts {
        processed: count("processed"),
        duplicates: count("duplicates"),
    }
}
