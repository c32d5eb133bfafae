//! One of three databases, chosen by its URL.

use std::fs;
use std::path::Path;
use std::str::FromStr as _;

use idempotent_runtime::migrate;
use sqlx::mysql::MySqlPool;
use sqlx::postgres::PgPool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection, Pool, query, query_scalar};

use crate::stop::Stop;

/// What a handler writes: enough to make its table, and to forget it.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// The scope of the handler's keys.
    pub scope: &'static str,
    /// The handler's table.
    pub table: &'static str,
    /// Its columns, quoted for SQL: `'event_id', 'channel'`. A table with other
    /// ones is not ours.
    pub columns: &'static str,
    /// The statement that makes it, unless it exists.
    pub create: &'static str,
}

/// A pool on one of three databases.
///
/// A service has one kind of database, and needs none of this: it connects and
/// calls `migrate(&pool)`.
#[derive(Debug)]
pub enum Database {
    /// An embedded file.
    Sqlite(SqlitePool),
    /// A Postgres server.
    Postgres(PgPool),
    /// A server of `MariaDB` or `MySQL`.
    MySql(MySqlPool),
}

/// The same, whatever the database.
macro_rules! on {
    ($database:expr, $pool:ident => $work:expr) => {
        match $database {
            Database::Sqlite($pool) => $work,
            Database::Postgres($pool) => $work,
            Database::MySql($pool) => $work,
        }
    };
}

impl Database {
    /// Connects, and makes the tables unless they exist.
    ///
    /// # Errors
    ///
    /// It is not the URL of a database, or that cannot be used.
    pub async fn open(url: &str, fresh: bool, effect: &Effect) -> Result<Self, Stop> {
        let opened = Self::connect(url, fresh, effect).await?;
        let prepared = opened.prepare(fresh, effect).await;
        prepared.map_err(|error| cannot_use(&opened.name(), &error))?;
        Ok(opened)
    }

    async fn connect(url: &str, fresh: bool, effect: &Effect) -> Result<Self, Stop> {
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        let connected = match scheme {
            "sqlite" => {
                let options = file(url)?;
                if fresh {
                    delete(&options, effect).await?;
                }
                SqlitePool::connect_with(options).await.map(Self::Sqlite)
            }
            "postgres" | "postgresql" => server(url).await.map(Self::Postgres),
            "mysql" | "mariadb" => server(url).await.map(Self::MySql),
            // The rest of the URL may hold a password.
            _ => {
                return Err(Stop::start(
                    "`--database` takes sqlite:FILE, postgres://…, mysql://… or mariadb://…",
                ));
            }
        };
        connected.map_err(|error| cannot_use(scheme, &error))
    }

    async fn prepare(&self, fresh: bool, effect: &Effect) -> Result<(), idempotent_runtime::Error> {
        on!(self, pool => migrate(pool).await)?;
        if fresh && !matches!(self, Self::Sqlite(_)) {
            self.forget(effect).await?;
        }
        let bytes = match self {
            // Otherwise `tr-1` and `TR-1` would be one to the table, and two to the keys.
            Self::MySql(_) => " COLLATE utf8mb4_bin",
            Self::Sqlite(_) | Self::Postgres(_) => "",
        };
        self.run(format!("{}{bytes}", effect.create)).await?;
        Ok(())
    }

    /// Forgets on a server what earlier runs did. Other services may share
    /// `processed_messages`: only the rows of our scope go.
    async fn forget(&self, effect: &Effect) -> Result<(), sqlx::Error> {
        let Effect {
            scope,
            table,
            columns,
            ..
        } = effect;
        let schema = match self {
            Self::MySql(_) => "database()",
            Self::Postgres(_) | Self::Sqlite(_) => "current_schema()",
        };
        let foreign = self
            .number(format!(
                "SELECT count(*) FROM information_schema.columns WHERE table_schema = {schema} \
                 AND table_name = '{table}' AND column_name NOT IN ({columns})"
            ))
            .await?;
        if foreign > 0 {
            let why = format!("--fresh does not drop `{table}`: it has columns of others");
            return Err(sqlx::Error::Configuration(why.into()));
        }
        // Keys first: if this is cut off between the two, the next run fails loudly at the rows
        // that are left, where the other order would take every event for done.
        self.run(format!(
            "DELETE FROM processed_messages WHERE scope = '{scope}'"
        ))
        .await?;
        self.run(format!("DROP TABLE IF EXISTS {table}")).await
    }

    /// Drops every connection as a crash would, and starts again.
    ///
    /// # Errors
    ///
    /// The database is gone.
    pub async fn reopen(self) -> Result<Self, Stop> {
        let reopened = match self {
            Self::Sqlite(old) => reopen(old).await.map(Self::Sqlite),
            Self::Postgres(old) => reopen(old).await.map(Self::Postgres),
            Self::MySql(old) => reopen(old).await.map(Self::MySql),
        };
        reopened.map_err(|error| Stop::broken(format_args!("cannot connect again: {error}")))
    }

    /// Ends the connections.
    pub async fn close(&self) {
        on!(self, pool => pool.close().await);
    }

    /// Returns the one number that a query gives.
    ///
    /// # Errors
    ///
    /// The query failed.
    pub async fn number(&self, sql: impl Into<String>) -> Result<i64, sqlx::Error> {
        let sql = AssertSqlSafe(sql.into());
        on!(self, pool => query_scalar(sql).fetch_one(pool).await)
    }

    async fn run(&self, sql: String) -> Result<(), sqlx::Error> {
        let sql = AssertSqlSafe(sql);
        on!(self, pool => query(sql).execute(pool).await.map(drop))
    }

    /// Which one it is, without its password.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Sqlite(pool) => {
                format!("sqlite:{}", pool.connect_options().get_filename().display())
            }
            Self::Postgres(pool) => {
                let options = pool.connect_options();
                let database = options.get_database().unwrap_or_default();
                format!(
                    "postgres://{}:{}/{database}",
                    options.get_host(),
                    options.get_port()
                )
            }
            Self::MySql(pool) => {
                let options = pool.connect_options();
                let database = options.get_database().unwrap_or_default();
                format!(
                    "mysql://{}:{}/{database}",
                    options.get_host(),
                    options.get_port()
                )
            }
        }
    }
}

/// A pool keeps knocking at a server that refuses, and then says that it timed
/// out. One connection says why.
async fn server<DB: sqlx::Database>(url: &str) -> Result<Pool<DB>, sqlx::Error> {
    let options = <DB::Connection as Connection>::Options::from_str(url)?;
    options.connect().await?.close().await?;
    Pool::connect_with(options).await
}

/// Every commit is on the disk before it is acknowledged: `synchronous` stays
/// FULL, its default. With NORMAL a power cut could take it back.
fn file(url: &str) -> Result<SqliteConnectOptions, Stop> {
    let options =
        SqliteConnectOptions::from_str(url).map_err(|error| cannot_use("sqlite", &error))?;
    let file = options.get_filename();
    if file.as_os_str().is_empty() || url.contains(":memory:") || url.contains("mode=memory") {
        return Err(Stop::start(
            "the database must outlive the consumer: name a file, sqlite:FILE",
        ));
    }
    Ok(options
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal))
}

/// Deletes the file, if nobody else keeps tables in it.
async fn delete(options: &SqliteConnectOptions, effect: &Effect) -> Result<(), Stop> {
    let file = options.get_filename();
    if !file.exists() {
        return Ok(());
    }
    let not_deleted =
        |why: &str| Stop::start(format_args!("`{}` was not deleted: {why}", file.display()));
    let foreign = foreign_tables(options, effect).await;
    match foreign.map_err(|error| not_deleted(&error.to_string()))? {
        0 => {}
        _ => return Err(not_deleted("it holds tables of others")),
    }
    for suffix in ["", "-wal", "-shm"] {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        let name = Path::new(&name);
        if name.exists() {
            fs::remove_file(name).map_err(|error| not_deleted(&error.to_string()))?;
        }
    }
    Ok(())
}

async fn foreign_tables(
    options: &SqliteConnectOptions,
    effect: &Effect,
) -> Result<i64, sqlx::Error> {
    let pool = SqlitePool::connect_with(options.clone()).await?;
    let foreign = query_scalar(AssertSqlSafe(format!(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' \
         AND name NOT IN ('processed_messages', '{}')",
        effect.table
    )))
    .fetch_one(&pool)
    .await;
    pool.close().await;
    foreign
}

async fn reopen<DB: sqlx::Database>(old: Pool<DB>) -> Result<Pool<DB>, sqlx::Error> {
    let options = (*old.connect_options()).clone();
    // Not awaited: nobody says good-bye in a crash.
    drop(old.close());
    Pool::connect_with(options).await
}

fn cannot_use(name: &str, error: &dyn std::error::Error) -> Stop {
    Stop::start(format_args!("cannot use the database {name}: {error}"))
}
