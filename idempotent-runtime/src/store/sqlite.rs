//! SQLite: an insert claims, a savepoint proves.
//!
//! The claim is the first statement of its savepoint, so that a deferred
//! transaction starts as a writer and is never told that its snapshot is stale
//! (517). Scope and key need no quoting: their alphabets have no quote.

use std::pin::pin;
use std::task::{Context, Waker};

use sqlx::sqlite::{Sqlite, SqliteConnection, SqliteError, SqliteRow};
use sqlx::{
    AssertSqlSafe, Database, Executor, Row as _, Transaction, query, query_as, query_scalar,
    raw_sql,
};
use sqlx_core::transaction::TransactionManager;

use super::savepoint::SavepointName;
use super::{Backend, Earlier, Name, New, Row, Unproven, column, hex, json, sql, unproven, upkeep};
use crate::attempts::{Begin, Options};
use crate::error::Lost;
use crate::table::{Table, faults};

const INSERT: &str = "INSERT INTO {table} (scope, key{columns}) VALUES ('{scope}', '{key}'{values}) \
     ON CONFLICT (scope, key) DO NOTHING RETURNING processed_at";
const EXPIRY: &str =
    "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + {retain} * 1000000";
const RECALL: &str = "SELECT strftime('%Y-%m-%dT%H:%M:%fZ', processed_at / 1e6, 'unixepoch'), \
     (julianday('now') - 2440587.5) * 86400.0 - processed_at / 1e6, fingerprint, result \
     FROM {table} WHERE scope = '{scope}' AND key = '{key}'";
const STORE: &str =
    "UPDATE {table} SET result = X'{result}' WHERE (scope, key) IN (VALUES {names})";
const DELETE: &str = "DELETE FROM {table} WHERE (scope, key) IN (VALUES {names})";
/// Without the `WHERE` its `ON` would be that of a join.
const CLAIM_ALL: &str = "INSERT INTO {table} (scope, key{columns}) SELECT json_extract(j.value, '$[0]'), json_extract(j.value, '$[1]'){values} \
     FROM json_each('[{names}]') AS j WHERE true ORDER BY j.key ON CONFLICT (scope, key) DO NOTHING \
     RETURNING scope, key, processed_at";
const WRITTEN: &str = "SELECT processed_at FROM {table} WHERE scope = '{scope}' AND key = '{key}'";
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
const COLUMNS: &str = "SELECT name, type, CASE WHEN name IN ('scope', 'key') THEN upper(type) LIKE '%TEXT%' \
     OR upper(type) LIKE '%CHAR%' OR upper(type) LIKE '%CLOB%' OR upper(type) LIKE '%BLOB%' \
     WHEN name IN ('processed_at', 'expires_at') THEN upper(type) LIKE '%INT%' \
     WHEN name IN ('fingerprint', 'result') THEN upper(type) LIKE '%BLOB%' ELSE 1 END, \
     \"notnull\" <> 0, dflt_value IS NOT NULL, 1 FROM pragma_table_info(?1, ?2) ORDER BY cid";
const UNIQUE: &str = "SELECT count(*) > 0 FROM pragma_index_list(?1, ?2) AS l WHERE l.\"unique\" AND NOT l.partial \
     AND (SELECT count(*) = 2 AND sum(x.name IN ('scope', 'key') AND x.coll = 'BINARY') = 2 \
          FROM pragma_index_xinfo(l.name, ?2) AS x WHERE x.key)";

const RELATION: &str = "SELECT EXISTS (SELECT 1 FROM {schema}.sqlite_master WHERE type = 'table' AND name = ?1), \
     EXISTS (SELECT 1 FROM {schema}.sqlite_master WHERE type = 'trigger' AND tbl_name = ?1)";

/// `SQLITE_ERROR`, which "no such savepoint" has.
const GENERIC_ERROR: &str = "1";

impl Backend for Sqlite {
    const FAILURE_ABORTS: bool = false;
    const CLOSE_IF_CUT: bool = false;
    type Mark = Mark;
    type Savepoint = SavepointName;

    async fn claim(tx: &mut Transaction<'_, Self>, row: Row<'_>) -> Result<Option<Mark>, Unproven> {
        let savepoint = SavepointName::next();
        let fingerprint = format!("X'{}'", hex(row.fingerprint.unwrap_or_default()));
        let insert = row.insert(INSERT, EXPIRY, &fingerprint);
        let claim = format!("SAVEPOINT {savepoint}; {insert}");
        let written = fetch(tx, &claim, row).await?;
        if !is_open(tx).await {
            return Err(Unproven::Lost(Lost::NotOpen));
        }
        if let Some(written) = written {
            let written = written.try_get(0)?;
            return Ok(Some(Mark { savepoint, written }));
        }
        run(tx, &format!("RELEASE {savepoint}"), row).await?;
        Ok(None)
    }

    async fn claim_all(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        names: &[Name<'_>],
    ) -> Result<Option<New<Mark>>, Unproven> {
        let savepoint = SavepointName::next();
        let fingerprint = format!("X'{}'", hex(row.fingerprint.unwrap_or_default()));
        let insert = row.insert(CLAIM_ALL, EXPIRY, &fingerprint);
        let insert = insert.replace("{names}", &json(names));
        let claim = format!("SAVEPOINT {savepoint}; {insert}");
        let claimed = fetch_all(tx, &claim, row).await?;
        if !is_open(tx).await {
            return Err(Unproven::Lost(Lost::NotOpen));
        }
        let mut fresh = Vec::with_capacity(claimed.len());
        let mut written = None;
        for row in &claimed {
            fresh.push((row.try_get(0)?, row.try_get(1)?));
            written = Some(row.try_get(2)?);
        }
        let Some(written) = written else {
            run(tx, &format!("RELEASE {savepoint}"), row).await?;
            return Ok(None);
        };
        let mark = Mark { savepoint, written };
        Ok(Some(New { names: fresh, mark }))
    }

    async fn recall(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
    ) -> Result<Option<Earlier>, Unproven> {
        let found = fetch(tx, RECALL, row).await?;
        Ok(found.as_ref().map(earlier).transpose()?)
    }

    async fn prove(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        mark: &Mark,
        result: Option<&[u8]>,
    ) -> Result<(), Unproven> {
        let release = format!("RELEASE {}{}", mark.savepoint, store(row, result));
        let release = run(tx, &release, row).await;
        settle(tx, release).await
    }

    async fn remove(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        mark: &Mark,
    ) -> Result<(), Unproven> {
        let delete = DELETE.replace("{names}", &rows(row));
        let remove = run(tx, &format!("RELEASE {}; {delete}", mark.savepoint), row).await;
        settle(tx, remove).await
    }

    async fn is_committed(tx: &mut Transaction<'_, Self>, row: Row<'_>, mark: &Mark) -> bool {
        let written = fetch(tx, WRITTEN, row).await.ok().flatten();
        written.is_some_and(|written| {
            written
                .try_get(0)
                .is_ok_and(|written: i64| written == mark.written)
        })
    }

    async fn set_savepoint(tx: &mut Transaction<'_, Self>) -> Result<SavepointName, sqlx::Error> {
        let name = SavepointName::next();
        raw_sql(AssertSqlSafe(format!("SAVEPOINT {name}")))
            .execute(&mut **tx)
            .await?;
        if is_open(tx).await {
            Ok(name)
        } else {
            Err(sqlx::Error::BeginFailed)
        }
    }

    async fn release(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        savepoint: &SavepointName,
        mark: &Mark,
        result: Option<&[u8]>,
    ) -> Result<(), Unproven> {
        // The claim's own savepoint first: without it the result is not stored.
        let store = result.map(|_| format!("RELEASE {}{}; ", mark.savepoint, store(row, result)));
        let release = format!("{}RELEASE {savepoint}", store.unwrap_or_default());
        let release = run(tx, &release, row).await;
        settle(tx, release).await
    }

    async fn roll_back(
        tx: &mut Transaction<'_, Self>,
        savepoint: &SavepointName,
    ) -> Result<(), Unproven> {
        let undo = AssertSqlSafe(format!("ROLLBACK TO {savepoint}; RELEASE {savepoint}"));
        let undo = raw_sql(undo).execute(&mut **tx).await.map(drop);
        settle(tx, undo).await
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
        let create = CREATE.replace("{table}", &table.quoted('"'));
        vec![create, upkeep::sqlite_index(table)]
    }

    async fn create(conn: &mut SqliteConnection, table: &Table) -> Result<(), sqlx::Error> {
        conn.execute(sql(CREATE, table, '"')).await.map(drop)
    }

    async fn inspect(
        conn: &mut SqliteConnection,
        table: &Table,
    ) -> Result<Option<Vec<String>>, sqlx::Error> {
        let (schema, name) = (table.schema().unwrap_or("main"), table.name());
        let columns = query(COLUMNS)
            .bind(name)
            .bind(schema)
            .fetch_all(&mut *conn)
            .await?;
        let columns = columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        if columns.is_empty() {
            return Ok(None);
        }
        let unique = query_scalar(UNIQUE)
            .bind(name)
            .bind(schema)
            .fetch_one(&mut *conn)
            .await?;
        let relation = RELATION.replace("{schema}", &format!("\"{schema}\""));
        let (is_ordinary, is_rewritten) = query_as(AssertSqlSafe(relation))
            .bind(name)
            .fetch_one(conn)
            .await?;
        Ok(Some(faults(&columns, unique, is_ordinary, is_rewritten)))
    }
}

/// The savepoint set with the claim, and when the row was written, as the
/// database says.
#[derive(Debug)]
pub struct Mark {
    savepoint: SavepointName,
    written: i64,
}

fn earlier(row: &SqliteRow) -> Result<Earlier, sqlx::Error> {
    Ok(Earlier {
        processed_at: row.try_get(0)?,
        age: row.try_get(1)?,
        fingerprint: row.try_get(2)?,
        result: row.try_get(3)?,
    })
}

fn rows(row: Row<'_>) -> String {
    let row_of = |(scope, key)| format!("('{scope}', '{key}')");
    row.names().map(row_of).collect::<Vec<_>>().join(", ")
}

/// Stores the result, after a statement that proves the transaction.
fn store(row: Row<'_>, result: Option<&[u8]>) -> String {
    result.map_or_else(String::new, |result| {
        let store = STORE.replace("{names}", &rows(row));
        format!("; {}", store.replace("{result}", &hex(result)))
    })
}

async fn fetch(
    tx: &mut Transaction<'_, Sqlite>,
    template: &str,
    row: Row<'_>,
) -> Result<Option<SqliteRow>, sqlx::Error> {
    raw_sql(row.sql(template, '"'))
        .fetch_optional(&mut **tx)
        .await
}

async fn fetch_all(
    tx: &mut Transaction<'_, Sqlite>,
    template: &str,
    row: Row<'_>,
) -> Result<Vec<SqliteRow>, sqlx::Error> {
    raw_sql(row.sql(template, '"')).fetch_all(&mut **tx).await
}

async fn run(
    tx: &mut Transaction<'_, Sqlite>,
    template: &str,
    row: Row<'_>,
) -> Result<(), sqlx::Error> {
    raw_sql(row.sql(template, '"'))
        .execute(&mut **tx)
        .await
        .map(drop)
}

/// Says, after a statement that set a savepoint, whether that stands in a
/// transaction. What sqlx has queued for it, such as the roll-back of a nested
/// `begin` that was dropped, is done by then. Without a transaction the savepoint
/// has begun one, which sqlx does not know of: it is rolled back.
async fn is_open(tx: &mut Transaction<'_, Sqlite>) -> bool {
    let is_open = <Sqlite as Database>::TransactionManager::get_transaction_depth(tx) > 0;
    if !is_open {
        let _ = tx.execute("ROLLBACK").await;
    }
    is_open
}

/// After a handler that ended the transaction itself, opens one again, for the
/// caller to roll back: sqlx counts it as open, and a roll-back that fails on
/// SQLite would leave the connection unusable in its pool.
async fn settle(
    tx: &mut Transaction<'_, Sqlite>,
    result: Result<(), sqlx::Error>,
) -> Result<(), Unproven> {
    let Err(error) = result else {
        return Ok(());
    };
    // A nested `begin` of the handler's, dropped before it was done, can make sqlx
    // roll back all of it: then nobody would end what is opened here.
    let is_counted = <Sqlite as Database>::TransactionManager::get_transaction_depth(tx) > 0;
    if is_counted && lost(&error).is_some() {
        // Where the transaction is still open, this fails, and all is well.
        let _ = tx.execute("BEGIN").await;
    }
    Err(unproven(error, lost))
}

fn lost(error: &sqlx::Error) -> Option<Lost> {
    let error = error.as_database_error()?;
    error.try_downcast_ref::<SqliteError>()?;
    (error.code()? == GENERIC_ERROR).then_some(Lost::SavepointGone)
}
