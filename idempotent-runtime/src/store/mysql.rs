//! MariaDB, and MySQL where it shares the code: a plain insert claims, a
//! savepoint proves.
//!
//! sqlx sets `CLIENT_FOUND_ROWS`, so that `ON DUPLICATE KEY UPDATE` cannot tell
//! new from old, and `INSERT IGNORE` would turn other errors into duplicates.
//! Scope and key need no quoting: their alphabets have no quote and no
//! backslash. MySQL itself is untested.

use sqlx::mysql::{MySql, MySqlConnection, MySqlDatabaseError, MySqlRow};
use sqlx::{
    AssertSqlSafe, Executor, Row as _, Transaction, query, query_as, query_scalar, raw_sql,
};
use sqlx_core::transaction::TransactionManager;

use super::nested::{self, Depth};
use super::savepoint::SavepointName;
use super::{
    Backend, Earlier, ManyWriters, Name, New, Row, Unproven, column, hex, json, sql, unproven,
};
use crate::attempts::{Begin, Options};
use crate::error::Lost;
use crate::handler::Busy;
use crate::table::{Table, faults};

const INSERT: &str =
    "INSERT INTO {table} (scope, `key`{columns}) VALUES ('{scope}', '{key}'{values})";
/// Without waiting. MySQL has no such prefix.
const AT_ONCE: &str = "SET STATEMENT innodb_lock_wait_timeout = 0 FOR ";
const EXPIRY: &str = "utc_timestamp(6) + INTERVAL {retain} SECOND";
const WRITTEN: &str =
    "SELECT CAST(processed_at AS char) FROM {table} WHERE scope = '{scope}' AND `key` = '{key}'";
/// A locking read: a plain one at REPEATABLE READ does not see a row that was
/// committed after the transaction's snapshot.
const FIND: &str =
    "SELECT 1 FROM {table} WHERE scope = '{scope}' AND `key` = '{key}' LOCK IN SHARE MODE";
const SEEN: &str = "SELECT 1 FROM {table} WHERE (scope, `key`) IN ({names}) LIMIT 1";
/// A locking read, for the same reason.
const RECALL: &str = "SELECT date_format(processed_at, '%Y-%m-%dT%H:%i:%s.%fZ'), \
     CAST(timestampdiff(MICROSECOND, processed_at, utc_timestamp(6)) AS double) / 1e6, fingerprint, result \
     FROM {table} WHERE scope = '{scope}' AND `key` = '{key}' LOCK IN SHARE MODE";
/// One statement for each row: of a list of rows the optimizer would scan a small
/// table, and lock what it passes.
const STORE: &str =
    "UPDATE {table} SET result = X'{result}' WHERE scope = '{scope}' AND `key` = '{key}'";
const DELETE: &str = "DELETE FROM {table} WHERE scope = '{scope}' AND `key` = '{key}'";
/// Row by row in the order of the names, so that no other one is locked.
const DELETE_ALL: &str = "DELETE m FROM JSON_TABLE('[{names}]', '$[*]' COLUMNS ( \
     s varchar(128) CHARACTER SET ascii COLLATE ascii_bin PATH '$[0]', \
     k varchar(255) CHARACTER SET ascii COLLATE ascii_bin PATH '$[1]')) AS j \
     STRAIGHT_JOIN {table} AS m FORCE INDEX (PRIMARY) ON m.scope = j.s AND m.`key` = j.k";
/// `IGNORE` is tolerable here alone: lengths and NULLs cannot be wrong, and a key
/// that is not returned is there, unless another unique index stood in its way.
const CLAIM_ALL: &str = "INSERT IGNORE INTO {table} (scope, `key`{columns}) SELECT j.s, j.k{values} \
     FROM JSON_TABLE('[{names}]', '$[*]' COLUMNS (n FOR ORDINALITY, \
     s varchar(128) CHARACTER SET ascii COLLATE ascii_bin PATH '$[0]', \
     k varchar(255) CHARACTER SET ascii COLLATE ascii_bin PATH '$[1]')) AS j ORDER BY j.n \
     RETURNING scope, `key`, CAST(processed_at AS char)";
/// A locking read of the keys would do, but on a small table it scans, locks
/// what it passes, and two batches end in a deadlock. Not prepared: dropped
/// meanwhile, sqlx 0.9.0 loses count of the answers, and the connection hangs in
/// its pool.
const OTHER_UNIQUE: &str = "SELECT count(*) FROM (SELECT index_name FROM information_schema.statistics \
     WHERE table_schema = coalesce({schema}, database()) AND table_name = '{name}' AND non_unique = 0 \
     GROUP BY index_name HAVING count(*) <> 2 OR sum(column_name IN ('scope', 'key')) <> 2) AS found";
const CREATE: &str = "CREATE TABLE IF NOT EXISTS {table} (
    scope varchar(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `key` varchar(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    processed_at datetime(6) NOT NULL DEFAULT (utc_timestamp(6)),
    expires_at datetime(6),
    fingerprint varbinary(40),
    result longblob,
    PRIMARY KEY (scope, `key`),
    KEY expires_at (expires_at)
) ENGINE = InnoDB";
const COLUMNS: &str = "SELECT column_name, column_type, CASE \
     WHEN column_name IN ('scope', 'key') THEN data_type IN ('char', 'varchar', 'varbinary') \
     AND character_maximum_length >= IF(column_name = 'scope', 128, 255) \
     WHEN column_name IN ('processed_at', 'expires_at') THEN data_type IN ('datetime', 'timestamp') \
     WHEN column_name IN ('fingerprint', 'result') THEN data_type LIKE '%blob' OR data_type = 'varbinary' \
     ELSE true END, is_nullable = 'NO', column_default IS NOT NULL OR extra <> '', \
     collation_name IS NULL OR collation_name LIKE '%\\_bin' \
     FROM information_schema.columns WHERE table_schema = coalesce(?, database()) AND table_name = ? \
     ORDER BY ordinal_position";
const UNIQUE: &str = "SELECT count(*) > 0 FROM (SELECT index_name FROM information_schema.statistics \
     WHERE table_schema = coalesce(?, database()) AND table_name = ? AND non_unique = 0 \
     GROUP BY index_name HAVING count(*) = 2 AND sum(column_name IN ('scope', 'key')) = 2 \
     AND max(sub_part) IS NULL) AS found";
const RELATION: &str = "SELECT t.table_type = 'BASE TABLE' AND t.engine = 'InnoDB', EXISTS (SELECT 1 \
     FROM information_schema.triggers AS g WHERE g.event_object_schema = t.table_schema \
     AND g.event_object_table = t.table_name AND g.event_manipulation = 'INSERT' AND g.action_timing = 'BEFORE') \
     FROM information_schema.tables AS t WHERE t.table_schema = coalesce(?, database()) AND t.table_name = ?";

// Error numbers, the server's error reference.
const DUPLICATE_ENTRY: u16 = 1062;
const LOCK_WAIT_TIMEOUT: u16 = 1205;
const PARSE_ERROR: u16 = 1064;
const NO_SUCH_SAVEPOINT: u16 = 1305;

impl ManyWriters for MySql {}

impl Backend for MySql {
    const FAILURE_ABORTS: bool = false;
    const CLOSE_IF_CUT: bool = true;
    type Mark = Mark;
    type Savepoint = Depth;

    async fn claim(tx: &mut Transaction<'_, Self>, row: Row<'_>) -> Result<Option<Mark>, Unproven> {
        let savepoint = SavepointName::next();
        // After a deadlock, say, there is no transaction any more: then a savepoint
        // is none, and the roll-back to it fails before the insert can commit itself.
        let fingerprint = format!("X'{}'", hex(row.fingerprint.unwrap_or_default()));
        let insert = row.insert(INSERT, EXPIRY, &fingerprint);
        let at_once = at_once(row);
        let claim = format!(
            "SAVEPOINT {savepoint}; ROLLBACK TO SAVEPOINT {savepoint}; {at_once}{insert}; {WRITTEN}"
        );
        let error = match fetch(tx, &claim, row).await {
            Ok(Some(written)) => {
                let written = written.try_get(0)?;
                return Ok(Some(Mark { savepoint, written }));
            }
            Ok(None) => sqlx::Error::Protocol("the key that was inserted is not there".to_owned()),
            Err(error) => error,
        };
        let find = format!("RELEASE SAVEPOINT {savepoint}; {FIND}");
        if is_duplicate(&error) && fetch(tx, &find, row).await?.is_some() {
            return Ok(None);
        }
        match (row.busy, number(&error)) {
            (Busy::Fail, Some(LOCK_WAIT_TIMEOUT)) => Err(Unproven::InFlight),
            (Busy::Fail, Some(PARSE_ERROR)) => Err(Unproven::Unsupported(
                "`busy = \"fail\"` needs MariaDB: MySQL cannot fail at once",
            )),
            _ => Err(unproven(error, |error| lost(error).map(|_| Lost::NotOpen))),
        }
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
        let at_once = at_once(row);
        let claim =
            format!("SAVEPOINT {savepoint}; ROLLBACK TO SAVEPOINT {savepoint}; {at_once}{insert}");
        let claimed = match fetch_all(tx, &claim, row).await {
            Ok(claimed) => claimed,
            Err(error) => match (row.busy, number(&error)) {
                // Another copy may be a duplicate that has not ended yet.
                (Busy::Fail, Some(LOCK_WAIT_TIMEOUT)) => {
                    let look = format!("RELEASE SAVEPOINT {savepoint}; {}", seen(names));
                    let seen = fetch(tx, &look, row).await?;
                    return seen.map_or(Err(Unproven::InFlight), |_| Ok(None));
                }
                (_, Some(PARSE_ERROR)) => {
                    return Err(Unproven::Unsupported(
                        "`each` and `was` need MariaDB 10.6 or later",
                    ));
                }
                _ => return Err(unproven(error, |error| lost(error).map(|_| Lost::NotOpen))),
            },
        };
        let mut fresh = Vec::with_capacity(claimed.len());
        let mut written = None;
        for row in &claimed {
            fresh.push((row.try_get(0)?, row.try_get(1)?));
            written = Some(row.try_get(2)?);
        }
        if fresh.len() < names.len() && has_other_unique(tx, row.table).await? {
            return Err(Unproven::Unsupported(
                "the table has another unique index, which would hide messages of a batch",
            ));
        }
        Ok(written.map(|written| New {
            names: fresh,
            mark: Mark { savepoint, written },
        }))
    }

    async fn recall(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
    ) -> Result<Option<Earlier>, Unproven> {
        let recall = format!("{}{RECALL}", at_once(row));
        match fetch(tx, &recall, row).await {
            Ok(found) => Ok(found.as_ref().map(earlier).transpose()?),
            Err(error) if row.busy == Busy::Fail && number(&error) == Some(LOCK_WAIT_TIMEOUT) => {
                Err(Unproven::InFlight)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn prove(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        mark: &Mark,
        result: Option<&[u8]>,
    ) -> Result<(), Unproven> {
        let release = format!("RELEASE SAVEPOINT {}{}", mark.savepoint, store(row, result));
        run(tx, &release, row)
            .await
            .map_err(|error| unproven(error, lost))
    }

    async fn remove(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        mark: &Mark,
    ) -> Result<(), Unproven> {
        // Sent together: without the savepoint the delete is not reached, where
        // it could hit the row of another consumer.
        let delete = if row.others.is_empty() {
            DELETE.to_owned()
        } else {
            DELETE_ALL.replace("{names}", &json(&row.names().collect::<Vec<_>>()))
        };
        let remove = format!("RELEASE SAVEPOINT {}; {delete}", mark.savepoint);
        run(tx, &remove, row)
            .await
            .map_err(|error| unproven(error, lost))
    }

    async fn is_committed(tx: &mut Transaction<'_, Self>, row: Row<'_>, mark: &Mark) -> bool {
        // Not a locking read: it must not wait for another consumer of the message.
        let written = fetch(tx, WRITTEN, row).await.ok().flatten();
        written.is_some_and(|written| {
            written
                .try_get(0)
                .is_ok_and(|written: String| written == mark.written)
        })
    }

    async fn set_savepoint(tx: &mut Transaction<'_, Self>) -> Result<Depth, sqlx::Error> {
        // Unlike that of Postgres, this `begin` has no guard inside: dropped
        // before it is done, it leaves an empty savepoint behind.
        <Self as sqlx::Database>::TransactionManager::begin(tx, None).await?;
        Ok(Depth::of(tx))
    }

    async fn release(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        savepoint: &Depth,
        mark: &Mark,
        result: Option<&[u8]>,
    ) -> Result<(), Unproven> {
        if nested::is_popped(tx, *savepoint) {
            Self::roll_back(tx, savepoint).await?;
            return Err(Unproven::Lost(Lost::RolledBack));
        }
        let release = nested::release(*savepoint);
        let release = format!(
            "RELEASE SAVEPOINT {}{}; {release}",
            mark.savepoint,
            store(row, result)
        );
        let released = run(tx, &release, row).await;
        match released {
            Ok(()) => nested::pop(tx),
            Err(_) => nested::discard(tx, *savepoint).await,
        }
        released.map_err(|error| unproven(error, lost))
    }

    async fn roll_back(tx: &mut Transaction<'_, Self>, savepoint: &Depth) -> Result<(), Unproven> {
        let rolled_back = nested::roll_back(tx, *savepoint).await;
        rolled_back.map_err(|error| unproven(error, lost))
    }

    fn cut(tx: &mut Transaction<'_, Self>, savepoint: &Depth) {
        nested::cut(tx, *savepoint);
    }

    fn begin(options: &Options) -> Result<Begin, &'static str> {
        let mut set = Vec::new();
        let mut restore = Vec::new();
        if let Some(timeout) = options.lock_timeout {
            // Whole seconds; 0 would not wait at all.
            let seconds = timeout.as_millis().div_ceil(1000).clamp(1, 1 << 30);
            set.push("@idempotent_lock_wait = @@SESSION.innodb_lock_wait_timeout".to_owned());
            set.push(format!("SESSION innodb_lock_wait_timeout = {seconds}"));
            restore.push("SESSION innodb_lock_wait_timeout = @idempotent_lock_wait");
        }
        if let Some(timeout) = options.statement_timeout {
            // 0 would switch it off.
            let seconds = timeout.as_secs_f64().clamp(0.001, f64::from(1 << 30));
            set.push("@idempotent_statement_time = @@SESSION.max_statement_time".to_owned());
            set.push(format!("SESSION max_statement_time = {seconds:.3}"));
            restore.push("SESSION max_statement_time = @idempotent_statement_time");
        }
        let mut statements = Vec::new();
        if !set.is_empty() {
            statements.push(format!("SET {}", set.join(", ")));
        }
        if let Some(isolation) = options.isolation {
            statements.push(format!(
                "SET TRANSACTION ISOLATION LEVEL {}",
                isolation.sql()
            ));
        }
        statements.push("START TRANSACTION".to_owned());
        let restore = (!restore.is_empty()).then(|| format!("SET {}", restore.join(", ")));
        Ok(Begin {
            statement: statements.join("; "),
            restore,
        })
    }

    async fn restore(conn: &mut MySqlConnection, statement: String) -> Result<(), sqlx::Error> {
        conn.execute(AssertSqlSafe(statement)).await.map(drop)
    }

    fn schema(table: &Table) -> Vec<String> {
        vec![CREATE.replace("{table}", &table.quoted('`'))]
    }

    async fn create(conn: &mut MySqlConnection, table: &Table) -> Result<(), sqlx::Error> {
        conn.execute(sql(CREATE, table, '`')).await.map(drop)
    }

    async fn inspect(
        conn: &mut MySqlConnection,
        table: &Table,
    ) -> Result<Option<Vec<String>>, sqlx::Error> {
        let (schema, name) = (table.schema(), table.name());
        let columns = query(COLUMNS)
            .bind(schema)
            .bind(name)
            .fetch_all(&mut *conn)
            .await?;
        let columns = columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        if columns.is_empty() {
            return Ok(None);
        }
        let unique = query_scalar(UNIQUE)
            .bind(schema)
            .bind(name)
            .fetch_one(&mut *conn)
            .await?;
        let (is_ordinary, is_rewritten) = query_as(RELATION)
            .bind(schema)
            .bind(name)
            .fetch_one(conn)
            .await?;
        Ok(Some(faults(&columns, unique, is_ordinary, is_rewritten)))
    }
}

/// The savepoint set with the claim, and when the row was written, as the
/// database says: it tells the row from that of another consumer who claimed the
/// key after a deadlock had rolled this transaction back.
#[derive(Debug)]
pub struct Mark {
    savepoint: SavepointName,
    written: String,
}

fn earlier(row: &MySqlRow) -> Result<Earlier, sqlx::Error> {
    Ok(Earlier {
        processed_at: row.try_get(0)?,
        age: row.try_get(1)?,
        fingerprint: row.try_get(2)?,
        result: row.try_get(3)?,
    })
}

const fn at_once(row: Row<'_>) -> &'static str {
    match row.busy {
        Busy::Wait => "",
        Busy::Fail => AT_ONCE,
    }
}

/// Looks, without a lock, whether one of the names is committed.
fn seen(names: &[Name<'_>]) -> String {
    let name = |(scope, key): &Name<'_>| format!("('{scope}', '{key}')");
    let names: Vec<_> = names.iter().map(name).collect();
    SEEN.replace("{names}", &names.join(", "))
}

/// Names of tables need no quoting either.
async fn has_other_unique(
    tx: &mut Transaction<'_, MySql>,
    table: &Table,
) -> Result<bool, sqlx::Error> {
    let schema = table.schema();
    let schema = schema.map_or_else(|| "NULL".to_owned(), |schema| format!("'{schema}'"));
    let others = OTHER_UNIQUE
        .replace("{schema}", &schema)
        .replace("{name}", table.name());
    let others = raw_sql(AssertSqlSafe(others)).fetch_one(&mut **tx).await?;
    Ok(others.try_get::<i64, _>(0)? > 0)
}

fn for_each(row: Row<'_>, statement: &str) -> String {
    let statement = |(scope, key)| statement.replace("{scope}", scope).replace("{key}", key);
    row.names().map(statement).collect::<Vec<_>>().join("; ")
}

/// Stores the result, after a statement that proves the transaction.
fn store(row: Row<'_>, result: Option<&[u8]>) -> String {
    result.map_or_else(String::new, |result| {
        let store = STORE.replace("{result}", &hex(result));
        format!("; {}", for_each(row, &store))
    })
}

async fn fetch(
    tx: &mut Transaction<'_, MySql>,
    template: &str,
    row: Row<'_>,
) -> Result<Option<MySqlRow>, sqlx::Error> {
    raw_sql(row.sql(template, '`'))
        .fetch_optional(&mut **tx)
        .await
}

async fn fetch_all(
    tx: &mut Transaction<'_, MySql>,
    template: &str,
    row: Row<'_>,
) -> Result<Vec<MySqlRow>, sqlx::Error> {
    raw_sql(row.sql(template, '`')).fetch_all(&mut **tx).await
}

async fn run(
    tx: &mut Transaction<'_, MySql>,
    template: &str,
    row: Row<'_>,
) -> Result<(), sqlx::Error> {
    raw_sql(row.sql(template, '`'))
        .execute(&mut **tx)
        .await
        .map(drop)
}

fn lost(error: &sqlx::Error) -> Option<Lost> {
    (number(error)? == NO_SUCH_SAVEPOINT).then_some(Lost::SavepointGone)
}

fn is_duplicate(error: &sqlx::Error) -> bool {
    number(error) == Some(DUPLICATE_ENTRY)
}

fn number(error: &sqlx::Error) -> Option<u16> {
    Some(
        error
            .as_database_error()?
            .try_downcast_ref::<MySqlDatabaseError>()?
            .number(),
    )
}
