//! A program of this package, started as a person starts it.

#![allow(dead_code, reason = "the tests of one broker use a part of it")]

use std::env;
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
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

/// Nothing here takes so long, on a machine that has other work, too.
const PATIENCE: Duration = Duration::from_mins(1);

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < end, "not within a minute: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A program that runs. Dropped, it is killed.
pub(crate) struct Running {
    child: Child,
    said: Lines,
    /// If the command has a pipe for them.
    complaints: Option<Lines>,
}

impl Running {
    /// Starts it, and waits until it says that it is ready.
    pub(crate) fn start(command: Command, ready: &str) -> Self {
        Self::start_and_hear(command, ready).0
    }

    /// Starts it, and returns the line in which it says that it is ready, too.
    pub(crate) fn start_and_hear(mut command: Command, ready: &str) -> (Self, String) {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let running = Self {
            said: Lines::of(child.stdout.take().unwrap()),
            complaints: child.stderr.take().map(Lines::of),
            child,
        };
        let line = running.says(ready);
        (running, line)
    }

    /// Waits until it says that, and returns the line.
    pub(crate) fn says(&self, word: &str) -> String {
        self.said.until(word, |line| line.starts_with(word))
    }

    /// Says whether it has said that by now, since it was asked last.
    pub(crate) fn has_said(&self, word: &str) -> bool {
        self.said.0.try_iter().any(|line| line.starts_with(word))
    }

    /// Waits until it complains of that.
    pub(crate) fn complains(&self, word: &str) {
        let complaints = self.complaints.as_ref().expect("there is a pipe");
        complaints.until(word, |line| line.contains(word));
    }

    /// Sends it a signal: `TERM`, as a supervisor does.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let kill = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(kill.unwrap().success());
    }

    /// Stops it, and returns its last line.
    pub(crate) fn stop(self) -> String {
        self.signal("TERM");
        let (status, said) = self.ended();
        let last = said.last().cloned().unwrap_or_default();
        assert!(status.success(), "{status}, after `{last}`");
        last
    }

    /// Kills it as a crash would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it ends by itself, and returns what it has said since.
    pub(crate) fn ended(mut self) -> (ExitStatus, Vec<String>) {
        let said = std::iter::from_fn(|| self.said.next("it ends")).collect();
        // With its output it closes all else.
        (self.child.wait().unwrap(), said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What it writes to a pipe, read by a thread, so that waiting for it has an end.
struct Lines(Receiver<String>);

impl Lines {
    fn of(pipe: impl Read + Send + 'static) -> Self {
        let (told, lines) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(pipe).lines();
            lines.map_while(Result::ok).for_each(|line| {
                // A test that listens no more lets it write on.
                let _ = told.send(line);
            });
        });
        Self(lines)
    }

    fn until(&self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        let mut lines = std::iter::from_fn(|| self.next(what));
        let line = lines.find(|line| is_it(line));
        line.unwrap_or_else(|| panic!("it ended before: {what}"))
    }

    fn next(&self, what: &str) -> Option<String> {
        match self.0.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("not within a minute: {what}"),
        }
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
