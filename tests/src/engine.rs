//! What the tests need of a database beyond what the runtime does with it.

use std::time::{Duration, Instant};

use idempotent_runtime::Store;
use sqlx::mysql::{MySql, MySqlConnectOptions};
use sqlx::postgres::{PgConnectOptions, Postgres};
use sqlx::sqlite::{Sqlite, SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, Row as _, query, raw_sql};

/// The databases under test.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// `MariaDB`.
    MariaDb,
    /// Postgres.
    Postgres,
    /// `SQLite`.
    Sqlite,
}

/// A database under test.
pub trait Engine: Store {
    /// Which one it is.
    const KIND: Kind;

    /// Makes an empty database, and says how to connect to it.
    fn create_database(
        name: &str,
    ) -> impl Future<Output = sqlx::Result<<Self::Connection as Connection>::Options>> + Send;

    /// Drops it, whoever is still connected.
    fn drop_database(name: &str) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// The same without a cache of statements: each is prepared anew, every time.
    fn without_statement_cache(
        options: &<Self::Connection as Connection>::Options,
    ) -> <Self::Connection as Connection>::Options;

    /// Runs statements; returns how many rows they touched.
    fn run(
        conn: &mut Self::Connection,
        sql: &str,
    ) -> impl Future<Output = sqlx::Result<u64>> + Send;

    /// Writes an effect.
    fn write(
        conn: &mut Self::Connection,
        id: &str,
        statement: Statement,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Returns the one number that a query gives.
    fn number(
        conn: &mut Self::Connection,
        sql: &str,
    ) -> impl Future<Output = sqlx::Result<i64>> + Send;

    /// Returns the first column that a query gives.
    fn texts(
        conn: &mut Self::Connection,
        sql: &str,
    ) -> impl Future<Output = sqlx::Result<Vec<String>>> + Send;

    /// Returns how the database would run a statement, as text.
    fn plan(
        conn: &mut Self::Connection,
        sql: &str,
    ) -> impl Future<Output = sqlx::Result<String>> + Send;

    /// Counts the sessions of this database that wait for a lock; `None` where
    /// that cannot be seen.
    const WAITING: Option<&'static str>;

    /// Gives 0 when no other session has a transaction open, or waits until
    /// none has one that touched the keys.
    const OPEN: &'static str;

    /// Returns the session's own number; `None` where there are no sessions.
    const SESSION: Option<&'static str>;

    /// Ends the session of that number.
    fn kill(session: i64) -> String;

    /// Gives the number of another session of this database, any, or 0; `None`
    /// where there are no sessions.
    const ANY_SESSION: Option<&'static str>;

    /// Makes a role of the database's name that may do no more than this with
    /// the tables that there are, and says how to connect as it. It is dropped
    /// with the database.
    fn create_role(
        options: &<Self::Connection as Connection>::Options,
        privileges: &str,
    ) -> impl Future<Output = sqlx::Result<<Self::Connection as Connection>::Options>> + Send;
}

/// How a statement is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Statement {
    /// As text, with its values in it.
    Text,
    /// Prepared and bound; its text is always the same, so that the connection
    /// prepares it once.
    Cached,
    /// Prepared and bound; its text was never seen before.
    New,
}

impl Statement {
    /// Those that are prepared.
    pub const PREPARED: [Self; 2] = [Self::Cached, Self::New];
}

/// Polls until something is so: for events that can only be looked for.
///
/// # Panics
///
/// After 20 seconds.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so().await {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

macro_rules! statements {
    ($placeholder:literal, $explain:literal, $column:literal) => {
        fn without_statement_cache(
            options: &<Self::Connection as Connection>::Options,
        ) -> <Self::Connection as Connection>::Options {
            options.clone().statement_cache_capacity(0)
        }

        async fn run(conn: &mut Self::Connection, sql: &str) -> sqlx::Result<u64> {
            let done = raw_sql(AssertSqlSafe(sql.to_owned())).execute(conn).await?;
            Ok(done.rows_affected())
        }

        async fn write(
            conn: &mut Self::Connection,
            id: &str,
            statement: Statement,
        ) -> sqlx::Result<()> {
            let insert = concat!("INSERT INTO effects (id) VALUES (", $placeholder, ")");
            let insert = match statement {
                Statement::Text => {
                    let insert = format!("INSERT INTO effects (id) VALUES ('{id}')");
                    return Self::run(conn, &insert).await.map(drop);
                }
                Statement::Cached => insert.to_owned(),
                Statement::New => format!("{insert} /* {id} */"),
            };
            query(AssertSqlSafe(insert))
                .bind(id)
                .execute(conn)
                .await
                .map(drop)
        }

        async fn number(conn: &mut Self::Connection, sql: &str) -> sqlx::Result<i64> {
            let row = conn
                .fetch_one(raw_sql(AssertSqlSafe(sql.to_owned())))
                .await?;
            row.try_get(0)
        }

        async fn texts(conn: &mut Self::Connection, sql: &str) -> sqlx::Result<Vec<String>> {
            let rows = conn
                .fetch_all(raw_sql(AssertSqlSafe(sql.to_owned())))
                .await?;
            rows.iter().map(|row| row.try_get(0)).collect()
        }

        async fn plan(conn: &mut Self::Connection, sql: &str) -> sqlx::Result<String> {
            let explain = format!(concat!($explain, " {}"), sql);
            let rows = conn.fetch_all(raw_sql(AssertSqlSafe(explain))).await?;
            let lines: sqlx::Result<Vec<String>> =
                rows.iter().map(|row| row.try_get($column)).collect();
            Ok(lines?.join("\n"))
        }
    };
}

fn url(variable: &str) -> String {
    std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} is not set: run `cargo xtask test`"))
}

impl Engine for Postgres {
    const KIND: Kind = Kind::Postgres;
    const WAITING: Option<&'static str> = Some(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
    const OPEN: &'static str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND pid <> pg_backend_pid() AND xact_start IS NOT NULL";
    const SESSION: Option<&'static str> = Some("SELECT pg_backend_pid()::bigint");

    async fn create_database(name: &str) -> sqlx::Result<PgConnectOptions> {
        let options: PgConnectOptions = url("IDEMPOTENT_POSTGRES_URL").parse()?;
        let mut admin = options.connect().await?;
        Self::run(&mut admin, &format!("CREATE DATABASE {name}")).await?;
        admin.close().await?;
        Ok(options.database(name))
    }

    async fn drop_database(name: &str) -> sqlx::Result<()> {
        let options: PgConnectOptions = url("IDEMPOTENT_POSTGRES_URL").parse()?;
        let mut admin = options.connect().await?;
        Self::run(
            &mut admin,
            &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
        )
        .await?;
        Self::run(&mut admin, &format!("DROP ROLE IF EXISTS {name}")).await?;
        admin.close().await
    }

    statements!("$1", "EXPLAIN", "QUERY PLAN");

    const ANY_SESSION: Option<&'static str> = Some(
        "SELECT coalesce((SELECT pid FROM pg_stat_activity WHERE datname = current_database() \
         AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1), 0)::bigint",
    );

    fn kill(session: i64) -> String {
        format!("SELECT pg_terminate_backend({session})")
    }

    async fn create_role(
        options: &PgConnectOptions,
        privileges: &str,
    ) -> sqlx::Result<PgConnectOptions> {
        let name = options.get_database().unwrap_or_default();
        let mut admin = options.connect().await?;
        let create = format!(
            "CREATE ROLE {name} LOGIN PASSWORD '{name}'; REVOKE CREATE ON SCHEMA public FROM PUBLIC; \
             GRANT {privileges} ON ALL TABLES IN SCHEMA public TO {name}"
        );
        Self::run(&mut admin, &create).await?;
        admin.close().await?;
        Ok(options.clone().username(name).password(name))
    }
}

impl Engine for MySql {
    const KIND: Kind = Kind::MariaDb;
    // `information_schema.innodb_trx` would know better, but it shows what it
    // showed before to whoever asks within 100 ms.
    const WAITING: Option<&'static str> = Some(
        "SELECT count(*) FROM information_schema.processlist WHERE db = database() AND command = 'Query' \
         AND info LIKE '%INSERT%INTO `processed_messages`%' AND id <> connection_id()",
    );
    const OPEN: &'static str = "LOCK TABLES processed_messages WRITE; UNLOCK TABLES; SELECT 0";
    const SESSION: Option<&'static str> = Some("SELECT CAST(connection_id() AS SIGNED)");

    async fn create_database(name: &str) -> sqlx::Result<MySqlConnectOptions> {
        let options: MySqlConnectOptions = url("IDEMPOTENT_MARIADB_URL").parse()?;
        let mut admin = options.connect().await?;
        let create =
            format!("CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci");
        Self::run(&mut admin, &create).await?;
        admin.close().await?;
        Ok(options.database(name))
    }

    async fn drop_database(name: &str) -> sqlx::Result<()> {
        let options: MySqlConnectOptions = url("IDEMPOTENT_MARIADB_URL").parse()?;
        let mut admin = options.connect().await?;
        let sessions = format!(
            "SELECT CAST(id AS CHAR) FROM information_schema.processlist WHERE db = '{name}'"
        );
        for session in Self::texts(&mut admin, &sessions).await? {
            // It may have ended by itself.
            let _ = Self::run(&mut admin, &format!("KILL {session}")).await;
        }
        Self::run(&mut admin, &format!("DROP DATABASE IF EXISTS {name}")).await?;
        Self::run(
            &mut admin,
            &format!("DROP USER IF EXISTS {}", accounts(name, "")),
        )
        .await?;
        admin.close().await
    }

    statements!("?", "EXPLAIN FORMAT = JSON", "EXPLAIN");

    const ANY_SESSION: Option<&'static str> = Some(
        "SELECT CAST(coalesce((SELECT id FROM information_schema.processlist WHERE db = database() \
         AND id <> connection_id() ORDER BY rand() LIMIT 1), 0) AS signed)",
    );

    fn kill(session: i64) -> String {
        format!("KILL {session}")
    }

    async fn create_role(
        options: &MySqlConnectOptions,
        privileges: &str,
    ) -> sqlx::Result<MySqlConnectOptions> {
        let name = options.get_database().unwrap_or_default();
        let mut admin = options.connect().await?;
        let create = format!(
            "CREATE USER {}; GRANT {privileges} ON {name}.* TO {}",
            accounts(name, &format!(" IDENTIFIED BY '{name}'")),
            accounts(name, "")
        );
        Self::run(&mut admin, &create).await?;
        admin.close().await?;
        Ok(options.clone().username(name).password(name))
    }
}

/// The same user, from wherever: `%` alone gives way to an anonymous one of
/// this host.
fn accounts(name: &str, identified: &str) -> String {
    ["'%'", "localhost", "'127.0.0.1'"]
        .map(|host| format!("{name}@{host}{identified}"))
        .join(", ")
}

impl Engine for Sqlite {
    const KIND: Kind = Kind::Sqlite;
    const WAITING: Option<&'static str> = None;
    const OPEN: &'static str = "BEGIN IMMEDIATE; ROLLBACK; SELECT 0";
    const SESSION: Option<&'static str> = None;

    async fn create_database(name: &str) -> sqlx::Result<SqliteConnectOptions> {
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory)?;
        Ok(SqliteConnectOptions::new()
            .filename(directory.join("test.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(Duration::from_secs(10)))
    }

    async fn drop_database(name: &str) -> sqlx::Result<()> {
        Ok(std::fs::remove_dir_all(std::env::temp_dir().join(name))?)
    }

    statements!("?", "EXPLAIN QUERY PLAN", "detail");

    const ANY_SESSION: Option<&'static str> = None;

    fn kill(_session: i64) -> String {
        unreachable!("sqlite has no sessions")
    }

    async fn create_role(
        _options: &SqliteConnectOptions,
        _privileges: &str,
    ) -> sqlx::Result<SqliteConnectOptions> {
        unreachable!("sqlite has no roles")
    }
}
