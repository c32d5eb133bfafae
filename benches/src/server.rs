//! The databases, and the business that is done on them.

use std::path::PathBuf;
use std::time::Duration;

use idempotent_runtime::Store;
use sqlx::mysql::{MySql, MySqlConnectOptions};
use sqlx::postgres::{PgConnectOptions, Postgres};
use sqlx::sqlite::{Sqlite, SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Executor, QueryBuilder, Row, query, raw_sql,
};

use crate::Failed;

/// The databases.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// `postgres://…`
    Postgres,
    /// `mysql://…`
    MariaDb,
    /// `sqlite:<directory>`
    Sqlite,
}

impl Kind {
    /// Of a URL. `sqlite` alone means the directory for temporary files.
    ///
    /// # Errors
    ///
    /// It is none of a database here.
    pub fn of(url: &str) -> Result<Self, Failed> {
        match url.split(':').next() {
            Some("postgres" | "postgresql") => Ok(Self::Postgres),
            Some("mysql" | "mariadb") => Ok(Self::MariaDb),
            Some("sqlite") => Ok(Self::Sqlite),
            _ => Err(format!(
                "`{url}` is not a URL of a database: write `postgres://…`, `mysql://…`, \
                 `sqlite:<directory>`, or `sqlite` for the directory of temporary files"
            )
            .into()),
        }
    }
}

/// A database, and the business that is done on it.
pub trait Server: Store {
    /// What it is called.
    const TITLE: &'static str;

    /// Makes the table of payments: the effects of the messages.
    const PAYMENTS: &'static str;

    /// Makes a schema, and says how to connect to it.
    fn create_schema(
        url: &str,
        name: &str,
    ) -> impl Future<Output = Result<<Self::Connection as Connection>::Options, Failed>> + Send;

    /// Drops a schema and everything in it.
    fn drop_schema(url: &str, name: &str) -> impl Future<Output = Result<(), Failed>> + Send;

    /// Runs statements.
    fn run(conn: &mut Self::Connection, sql: &str)
    -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Returns the one number that a query gives.
    fn number(
        conn: &mut Self::Connection,
        sql: &str,
    ) -> impl Future<Output = sqlx::Result<i64>> + Send;

    /// Writes a payment: the effect of a message.
    fn pay(conn: &mut Self::Connection, id: i64) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Writes payments, in one statement.
    fn pay_all(
        conn: &mut Self::Connection,
        ids: &[i64],
    ) -> impl Future<Output = sqlx::Result<()>> + Send;
}

const ACCOUNTS: i64 = 10_000;
const AMOUNT: i64 = 1_250;

macro_rules! statements {
    ($pay:literal) => {
        async fn run(conn: &mut Self::Connection, sql: &str) -> sqlx::Result<()> {
            let sql = raw_sql(AssertSqlSafe(sql.to_owned()));
            conn.execute(sql).await.map(drop)
        }

        async fn number(conn: &mut Self::Connection, sql: &str) -> sqlx::Result<i64> {
            let sql = raw_sql(AssertSqlSafe(sql.to_owned()));
            conn.fetch_one(sql).await?.try_get(0)
        }

        async fn pay(conn: &mut Self::Connection, id: i64) -> sqlx::Result<()> {
            let payment = query($pay).bind(id).bind(id % ACCOUNTS).bind(AMOUNT);
            payment.execute(conn).await.map(drop)
        }
    };
}

/// Many rows of values: a statement for each size of a batch, prepared once.
macro_rules! pay_all_by_values {
    () => {
        async fn pay_all(conn: &mut Self::Connection, ids: &[i64]) -> sqlx::Result<()> {
            let mut payments = QueryBuilder::new("INSERT INTO payments (id, account, amount) ");
            payments.push_values(ids, |mut row, id| {
                row.push_bind(*id)
                    .push_bind(id % ACCOUNTS)
                    .push_bind(AMOUNT);
            });
            payments.build().execute(conn).await.map(drop)
        }
    };
}

impl Server for Postgres {
    const TITLE: &'static str = "Postgres";
    /// The machine is the measured session's.
    const PAYMENTS: &'static str = "CREATE TABLE payments (id bigint PRIMARY KEY, account bigint NOT NULL, \
         amount bigint NOT NULL) WITH (autovacuum_enabled = off)";

    async fn create_schema(url: &str, name: &str) -> Result<PgConnectOptions, Failed> {
        let options: PgConnectOptions = url.parse()?;
        let mut admin = options.connect().await?;
        Self::run(&mut admin, &format!("CREATE SCHEMA {name}")).await?;
        admin.close().await?;
        Ok(options.options([("search_path", name)]))
    }

    async fn drop_schema(url: &str, name: &str) -> Result<(), Failed> {
        let mut admin = url.parse::<PgConnectOptions>()?.connect().await?;
        Self::run(&mut admin, &format!("DROP SCHEMA {name} CASCADE")).await?;
        Ok(admin.close().await?)
    }

    statements!("INSERT INTO payments (id, account, amount) VALUES ($1, $2, $3)");

    async fn pay_all(conn: &mut Self::Connection, ids: &[i64]) -> sqlx::Result<()> {
        let accounts: Vec<i64> = ids.iter().map(|id| id % ACCOUNTS).collect();
        let amounts = vec![AMOUNT; ids.len()];
        query(
            "INSERT INTO payments (id, account, amount) \
             SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[])",
        )
        .bind(ids)
        .bind(accounts)
        .bind(amounts)
        .execute(conn)
        .await
        .map(drop)
    }
}

impl Server for MySql {
    const TITLE: &'static str = "MariaDB";
    const PAYMENTS: &'static str = "CREATE TABLE payments (id bigint PRIMARY KEY, account bigint NOT NULL, amount bigint NOT NULL)";

    async fn create_schema(url: &str, name: &str) -> Result<MySqlConnectOptions, Failed> {
        let options: MySqlConnectOptions = url.parse()?;
        let mut admin = options.connect().await?;
        Self::run(&mut admin, &format!("CREATE DATABASE {name}")).await?;
        admin.close().await?;
        Ok(options.database(name))
    }

    async fn drop_schema(url: &str, name: &str) -> Result<(), Failed> {
        let mut admin = url.parse::<MySqlConnectOptions>()?.connect().await?;
        Self::run(&mut admin, &format!("DROP DATABASE {name}")).await?;
        Ok(admin.close().await?)
    }

    statements!("INSERT INTO payments (id, account, amount) VALUES (?, ?, ?)");
    pay_all_by_values!();
}

impl Server for Sqlite {
    const TITLE: &'static str = "SQLite";
    const PAYMENTS: &'static str = "CREATE TABLE payments (id INTEGER PRIMARY KEY, account INTEGER NOT NULL, \
         amount INTEGER NOT NULL) STRICT";

    /// Commits are as durable as those of the servers.
    async fn create_schema(url: &str, name: &str) -> Result<SqliteConnectOptions, Failed> {
        let directory = directory(url, name);
        std::fs::create_dir(&directory)?;
        Ok(SqliteConnectOptions::new()
            .filename(directory.join("bench.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_mins(1)))
    }

    async fn drop_schema(url: &str, name: &str) -> Result<(), Failed> {
        Ok(std::fs::remove_dir_all(directory(url, name))?)
    }

    statements!("INSERT INTO payments (id, account, amount) VALUES (?, ?, ?)");
    pay_all_by_values!();
}

fn directory(url: &str, name: &str) -> PathBuf {
    match url.split_once(':') {
        Some((_, parent)) if !parent.is_empty() => PathBuf::from(parent).join(name),
        _ => std::env::temp_dir().join(name),
    }
}
