//! SQLite: an insert claims, a savepoint proves.
//!
//! The claim is the first statement of its savepoint, so that a deferred
//! transaction starts as a writer and is never told that its snapshot is stale
//! (517). Scope and key need no quoting: their alphabets have no quote.

use std::pin::pin;
use std::task::{Context, Waker};

use sqlx::sqlite::{Sqlite, SqliteConnection, SqliteError};
use sqlx::{AssertSqlSafe, Database, Executor, Transaction, query, query_scalar, raw_sql};
use sqlx_core::transaction::TransactionManager;

use super::savepoint::SavepointName;
use super::{Backend, Removal, Row, Unproven, column, sql};
use crate::attempts::{Begin, Options};
use crate::error::Lost;
use crate::table::{Table, faults};

const INSERT: &str = "INSERT INTO {table} (scope, key) VALUES ('{scope}', '{key}') \
     ON CONFLICT (scope, key) DO NOTHING RETURNING 1";
const DELETE: &str = "DELETE FROM {table} WHERE scope = '{scope}' AND key = '{key}'";
const EXISTS: &str = "SELECT 1 FROM {table} WHERE scope = '{scope}' AND key = '{key}'";
/// `julianday` counts days; 2440587.5 is 1970-01-01.
const CREATE: &str = "CREATE TABLE IF NOT EXISTS {table} (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    processed_at INTEGER NOT NULL
        DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    expires_at INTEGER,
    fingerprint BLOB,
    result BLOB,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID";
const COLUMNS: &str = "SELECT name, type, upper(type) LIKE '%TEXT%' OR upper(type) LIKE '%CHAR%' \
     OR upper(type) LIKE '%CLOB%' OR upper(type) LIKE '%BLOB%', \"notnull\" <> 0, dflt_value IS NOT NULL, 1 \
     FROM pragma_table_info(?1, ?2) ORDER BY cid";
const UNIQUE: &str = "SELECT count(*) > 0 FROM pragma_index_list(?1, ?2) AS l WHERE l.\"unique\" AND NOT l.partial \
     AND (SELECT count(*) = 2 AND sum(x.name IN ('scope', 'key') AND x.coll = 'BINARY') = 2 \
          FROM pragma_index_xinfo(l.name, ?2) AS x WHERE x.key)";

/// `SQLITE_ERROR`, which "no such savepoint" has.
const GENERIC_ERROR: &str = "1";

impl Backend for Sqlite {
    type Mark = SavepointName;
    type Savepoint = SavepointName;

    async fn claim(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
    ) -> Result<Option<SavepointName>, sqlx::Error> {
        let name = SavepointName::next();
        if finds(tx, &format!("SAVEPOINT {name}; {INSERT}"), row).await? {
            return Ok(Some(name));
        }
        run(tx, &format!("RELEASE {name}"), row).await?;
        Ok(None)
    }

    async fn prove(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        mark: &SavepointName,
    ) -> Result<(), Unproven> {
        let release = run(tx, &format!("RELEASE {mark}"), row).await;
        settle(tx, release).await.map_err(unproven)
    }

    async fn remove(tx: &mut Transaction<'_, Self>, row: Row<'_>, mark: &SavepointName) -> Removal {
        let removed = run(tx, &format!("RELEASE {mark}; {DELETE}"), row).await;
        removal(tx, row, removed).await
    }

    async fn set_savepoint(tx: &mut Transaction<'_, Self>) -> Result<SavepointName, sqlx::Error> {
        let name = SavepointName::next();
        raw_sql(AssertSqlSafe(format!("SAVEPOINT {name}")))
            .execute(&mut **tx)
            .await?;
        Ok(name)
    }

    async fn claim_under_savepoint(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
    ) -> Result<bool, sqlx::Error> {
        finds(tx, INSERT, row).await
    }

    async fn release(
        tx: &mut Transaction<'_, Self>,
        savepoint: &SavepointName,
    ) -> Result<(), Unproven> {
        let release = raw_sql(AssertSqlSafe(format!("RELEASE {savepoint}")));
        let release = release.execute(&mut **tx).await.map(drop);
        settle(tx, release).await.map_err(unproven)
    }

    async fn roll_back(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        savepoint: &SavepointName,
    ) -> Removal {
        let rolled_back = run(
            tx,
            &format!("ROLLBACK TO {savepoint}; RELEASE {savepoint}"),
            row,
        )
        .await;
        removal(tx, row, rolled_back).await
    }

    fn cut(tx: &mut Transaction<'_, Self>, savepoint: &SavepointName) {
        // The first poll hands the statement to the connection's worker, which
        // works in order.
        let undo = format!("ROLLBACK TO {savepoint}; RELEASE {savepoint}");
        let undo = pin!(raw_sql(AssertSqlSafe(undo)).execute(&mut **tx));
        let _ = undo.poll(&mut Context::from_waker(Waker::noop()));
    }

    fn begin(options: &Options) -> Result<Begin, &'static str> {
        if options.lock_timeout.is_some() {
            return Err(
                "sqlite has no lock timeout of a transaction: set `busy_timeout` on the connect options",
            );
        }
        if options.statement_timeout.is_some() {
            return Err("sqlite has no statement timeout");
        }
        // Every transaction here writes, so that it may as well start so; and
        // each is serializable, whatever level is asked for.
        Ok(Begin {
            statement: "BEGIN IMMEDIATE".to_owned(),
            restore: None,
        })
    }

    async fn restore(conn: &mut SqliteConnection, statement: String) -> Result<(), sqlx::Error> {
        conn.execute(AssertSqlSafe(statement)).await.map(drop)
    }

    fn schema(table: &Table) -> Vec<String> {
        vec![CREATE.replace("{table}", &table.quoted('"'))]
    }

    async fn create(conn: &mut SqliteConnection, table: &Table) -> Result<(), sqlx::Error> {
        conn.execute(sql(CREATE, table, '"')).await.map(drop)
    }

    async fn inspect(
        conn: &mut SqliteConnection,
        table: &Table,
    ) -> Result<Vec<String>, sqlx::Error> {
        let (schema, name) = (table.schema().unwrap_or("main"), table.name());
        let columns = query(COLUMNS)
            .bind(name)
            .bind(schema)
            .fetch_all(&mut *conn)
            .await?;
        let columns = columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let unique = query_scalar(UNIQUE)
            .bind(name)
            .bind(schema)
            .fetch_one(conn)
            .await?;
        Ok(faults(&columns, unique))
    }
}

async fn finds(
    tx: &mut Transaction<'_, Sqlite>,
    template: &str,
    row: Row<'_>,
) -> Result<bool, sqlx::Error> {
    Ok(raw_sql(statements(template, row))
        .fetch_optional(&mut **tx)
        .await?
        .is_some())
}

async fn run(
    tx: &mut Transaction<'_, Sqlite>,
    template: &str,
    row: Row<'_>,
) -> Result<(), sqlx::Error> {
    raw_sql(statements(template, row))
        .execute(&mut **tx)
        .await
        .map(drop)
}

/// After a handler that ended the transaction itself, opens one again, for the
/// caller to roll back: sqlx counts it as open, and a roll-back that fails on
/// SQLite would leave the connection unusable in its pool.
async fn settle<T: Send>(
    tx: &mut Transaction<'_, Sqlite>,
    result: Result<T, sqlx::Error>,
) -> Result<T, sqlx::Error> {
    // A nested `begin` of the handler's, dropped before it was done, can make sqlx
    // roll back all of it: then nobody would end what is opened here.
    let is_counted = <Sqlite as Database>::TransactionManager::get_transaction_depth(tx) > 0;
    if is_counted && result.as_ref().is_err_and(|error| lost(error).is_some()) {
        // Where the transaction is still open, this fails, and all is well.
        let _ = tx.execute("BEGIN").await;
    }
    result
}

async fn removal(
    tx: &mut Transaction<'_, Sqlite>,
    row: Row<'_>,
    undone: Result<(), sqlx::Error>,
) -> Removal {
    match settle(tx, undone).await {
        Err(error) if lost(&error).is_some() => Removal::of(finds(tx, EXISTS, row).await),
        Ok(()) | Err(_) => Removal::Gone,
    }
}

fn unproven(error: sqlx::Error) -> Unproven {
    lost(&error).map_or(Unproven::Failed(error), Unproven::Lost)
}

fn lost(error: &sqlx::Error) -> Option<Lost> {
    let error = error.as_database_error()?;
    error.try_downcast_ref::<SqliteError>()?;
    (error.code()? == GENERIC_ERROR).then_some(Lost::SavepointGone)
}

fn statements(template: &str, row: Row<'_>) -> AssertSqlSafe<String> {
    let template = template
        .replace("{scope}", row.scope)
        .replace("{key}", row.key);
    sql(&template, row.table, '"')
}
