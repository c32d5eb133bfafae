//! Postgres: one statement claims, the transaction id proves.

use std::time::Duration;

use sqlx::postgres::{PgConnection, PgRow, Postgres};
use sqlx::{
    AssertSqlSafe, Executor, Row as _, Transaction, query, query_as, query_scalar, raw_sql,
};
use sqlx_core::transaction::TransactionManager;

use super::forget::forget_if_dropped;
use super::nested::{self, Depth};
use super::{
    Backend, Earlier, ManyWriters, Name, New, Row, Unproven, column, hex, sql, unproven, upkeep,
};
use crate::attempts::{Begin, Isolation, Options};
use crate::error::Lost;
use crate::handler::Busy;
use crate::table::{Table, faults};

/// The claim's mark: the transaction, and the (sub)transaction that wrote the
/// row. The second tells our row from that of another consumer who claimed the
/// key after this transaction had rolled back past its claim.
const CLAIM: &str = "INSERT INTO {table} (scope, key{columns}) VALUES ($1, $2{values}) \
     ON CONFLICT (scope, key) DO NOTHING RETURNING pg_current_xact_id()::text || '/' || xmin::text";
const CLAIM_ALL: &str = "INSERT INTO {table} (scope, key{columns}) SELECT s, k{values} \
     FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u (s, k, n) ORDER BY n \
     ON CONFLICT (scope, key) DO NOTHING RETURNING scope, key, pg_current_xact_id()::text || '/' || xmin::text";
/// Without waiting: who claims names first holds locks of them until the
/// transaction ends. They are tried in order, up to the first that is refused:
/// then a name may be committed all the same, and another copy be open.
const CLAIM_OR_FAIL: &str = "WITH RECURSIVE u AS (SELECT s, k, n FROM unnest($1::text[], $2::text[]) \
     WITH ORDINALITY AS u (s, k, n)), l (n, ok) AS (SELECT 0::bigint, true UNION ALL \
     SELECT u.n, pg_try_advisory_xact_lock(hashtextextended(s || E'\\n' || k, '{table}'::regclass::oid::bigint)) \
     FROM l JOIN u ON u.n = l.n + 1 WHERE l.ok), \
     i AS (INSERT INTO {table} (scope, key{columns}) SELECT s, k{values} FROM u \
     WHERE (SELECT bool_and(ok) FROM l) ORDER BY n ON CONFLICT (scope, key) DO NOTHING \
     RETURNING scope, key, pg_current_xact_id()::text || '/' || xmin::text) \
     SELECT * FROM i UNION ALL SELECT NULL, NULL, NULL WHERE NOT (SELECT bool_and(ok) FROM l) \
     AND NOT EXISTS (SELECT FROM {table} WHERE (scope, key) IN (SELECT s, k FROM u))";
const EXPIRY: &str = "clock_timestamp() + interval '{retain} seconds'";
const RECALL: &str = "SELECT to_char(processed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'), \
     extract(epoch FROM clock_timestamp() - processed_at)::float8, fingerprint, result \
     FROM {table} WHERE scope = $1 AND key = $2";
const STORE: &str = "UPDATE {table} SET result = $4 \
     WHERE (scope, key) IN (SELECT * FROM unnest($1::text[], $2::text[])) \
     AND pg_current_xact_id_if_assigned()::text || '/' || xmin::text = $3";
/// A snapshot may still hold an older row of the key, which was deleted since.
const PROVE: &str = "SELECT pg_current_xact_id_if_assigned()::text || '/' || xmin::text \
     FROM {table} WHERE scope = $1 AND key = $2 ORDER BY xmin::text = split_part($3, '/', 2) DESC LIMIT 1";
const REMOVE: &str = "DELETE FROM {table} WHERE (scope, key) IN (SELECT * FROM unnest($1::text[], $2::text[])) \
     AND pg_current_xact_id_if_assigned()::text || '/' || xmin::text = $3";
const COMMITTED: &str = "SELECT EXISTS (SELECT FROM {table} WHERE scope = $1 AND key = $2 \
     AND xmin::text = split_part($3, '/', 2))";
const CREATE: &str = r#"CREATE TABLE IF NOT EXISTS {table} (
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    processed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,
    fingerprint bytea,
    result bytea,
    PRIMARY KEY (scope, key)
)"#;
/// `CREATE … IF NOT EXISTS` of two sessions at once can fail on the catalog's
/// own unique index, so that they take turns, by a lock that ends with the
/// transaction.
const LOCK_SCHEMA: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended('idempotent-runtime schema', 0))";
const SCHEMA_EXISTS: &str = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";
/// Of the types for text, `name` cuts, `citext` folds, and `char(n)` pads.
const COLUMNS: &str = "SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), \
     CASE WHEN a.attname IN ('scope', 'key') THEN t.typname = 'text' OR t.typname = 'varchar' \
     AND (a.atttypmod < 0 OR a.atttypmod - 4 >= CASE a.attname WHEN 'scope' THEN 128 ELSE 255 END) \
     WHEN a.attname IN ('processed_at', 'expires_at') THEN t.typname = 'timestamptz' \
     WHEN a.attname IN ('fingerprint', 'result') THEN t.typname = 'bytea' ELSE true END, a.attnotnull, \
     a.atthasdef OR a.attidentity <> '' OR a.attgenerated <> '', coalesce(c.collisdeterministic, true) \
     FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation c ON c.oid = a.attcollation \
     WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";
const UNIQUE: &str = "SELECT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = to_regclass($1) \
     AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL \
     AND i.indnkeyatts = 2 AND (SELECT count(*) = 2 FROM pg_attribute a WHERE a.attrelid = i.indrelid \
     AND a.attnum IN (i.indkey[0], i.indkey[1]) AND a.attname IN ('scope', 'key')))";
/// `tgtype`: 1 for each row, 2 before, 4 insert (`pg_trigger.h`).
const RELATION: &str = "SELECT c.relkind = 'r', EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid \
     AND NOT t.tgisinternal AND t.tgtype & 7 = 7) OR EXISTS (SELECT FROM pg_rewrite r \
     WHERE r.ev_class = c.oid AND r.ev_type = '3') FROM pg_class c WHERE c.oid = to_regclass($1)";

// SQLSTATE, appendix A of the Postgres manual.
const IN_FAILED_TRANSACTION: &str = "25P02";
const NO_ACTIVE_TRANSACTION: &str = "25P01";
const NO_SUCH_SAVEPOINT: &str = "3B001";

impl ManyWriters for Postgres {}

impl Backend for Postgres {
    const FAILURE_ABORTS: bool = true;
    const CLOSE_IF_CUT: bool = false;
    type Mark = String;
    type Savepoint = Depth;

    async fn claim(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
    ) -> Result<Option<String>, Unproven> {
        if row.busy == Busy::Fail {
            let claimed = Self::claim_all(tx, row, &[(row.scope, row.key)]).await?;
            return Ok(claimed.map(|new| new.mark));
        }
        let claim = row.insert(CLAIM, EXPIRY, "$3");
        let mut claim = query_scalar(sql(&claim, row.table, '"'))
            .bind(row.scope)
            .bind(row.key);
        if let Some(fingerprint) = row.fingerprint {
            claim = claim.bind(fingerprint);
        }
        Ok(claim.fetch_optional(&mut **tx).await?)
    }

    async fn claim_all(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        names: &[Name<'_>],
    ) -> Result<Option<New<String>>, Unproven> {
        let (scopes, keys): (Vec<&str>, Vec<&str>) = names.iter().copied().unzip();
        let claim = match row.busy {
            Busy::Wait => CLAIM_ALL,
            Busy::Fail => CLAIM_OR_FAIL,
        };
        let claim = row.insert(claim, EXPIRY, "$3");
        let mut claim = query(sql(&claim, row.table, '"')).bind(scopes).bind(keys);
        if let Some(fingerprint) = row.fingerprint {
            claim = claim.bind(fingerprint);
        }
        let (mut names, mut mark) = (Vec::new(), None);
        for claimed in claim.fetch_all(&mut **tx).await? {
            let Some(scope) = claimed.try_get(0)? else {
                return Err(Unproven::InFlight);
            };
            names.push((scope, claimed.try_get(1)?));
            mark = Some(claimed.try_get(2)?);
        }
        Ok(mark.map(|mark| New { names, mark }))
    }

    async fn recall(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
    ) -> Result<Option<Earlier>, Unproven> {
        let found = query(sql(RECALL, row.table, '"'))
            .bind(row.scope)
            .bind(row.key)
            .fetch_optional(&mut **tx)
            .await?;
        Ok(found.as_ref().map(earlier).transpose()?)
    }

    async fn prove(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        mark: &String,
        result: Option<&[u8]>,
    ) -> Result<(), Unproven> {
        if let Some(result) = result {
            let (scopes, keys): (Vec<&str>, Vec<&str>) = row.names().unzip();
            let stored = query(sql(STORE, row.table, '"'))
                .bind(scopes)
                .bind(keys)
                .bind(mark)
                .bind(result)
                .execute(&mut **tx)
                .await;
            return match stored {
                Ok(done) if done.rows_affected() == row.names().count() as u64 => Ok(()),
                Ok(_) => Err(Unproven::Lost(Lost::Ended)),
                Err(error) => Err(unproven(error, lost)),
            };
        }
        let proof = query_scalar::<_, Option<String>>(sql(PROVE, row.table, '"'))
            .bind(row.scope)
            .bind(row.key)
            .bind(mark)
            .fetch_optional(&mut **tx)
            .await;
        proven(proof.map(Option::flatten), mark)
    }

    async fn remove(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        mark: &String,
    ) -> Result<(), Unproven> {
        let (scopes, keys): (Vec<&str>, Vec<&str>) = row.names().unzip();
        let removed = query(sql(REMOVE, row.table, '"'))
            .bind(scopes)
            .bind(keys)
            .bind(mark)
            .execute(&mut **tx)
            .await?;
        if removed.rows_affected() < row.names().count() as u64 {
            return Err(Unproven::Lost(Lost::Ended));
        }
        Ok(())
    }

    async fn is_committed(tx: &mut Transaction<'_, Self>, row: Row<'_>, mark: &String) -> bool {
        query_scalar(sql(COMMITTED, row.table, '"'))
            .bind(row.scope)
            .bind(row.key)
            .bind(mark)
            .fetch_one(&mut **tx)
            .await
            // The handler has begun another transaction, which is aborted by now: it ended ours.
            .unwrap_or(true)
    }

    async fn set_savepoint(tx: &mut Transaction<'_, Self>) -> Result<Depth, sqlx::Error> {
        let depth = Depth::of(tx);
        // sqlx's `begin`, dropped before it is done, rolls back the caller's
        // transaction; forgotten instead, it leaves an empty savepoint behind.
        let begin = <Self as sqlx::Database>::TransactionManager::begin(tx, None);
        let result = forget_if_dropped(begin).await;
        if result.is_err() && nested::is_popped(tx, depth) {
            abort(tx).await;
        }
        result.map(|()| Depth::of(tx))
    }

    async fn release(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        savepoint: &Depth,
        mark: &String,
        result: Option<&[u8]>,
    ) -> Result<(), Unproven> {
        if nested::is_popped(tx, *savepoint) {
            Self::roll_back(tx, savepoint).await?;
            return Err(Unproven::Lost(Lost::RolledBack));
        }
        let store = result.map(|result| {
            let (scopes, keys): (Vec<&str>, Vec<&str>) = row.names().unzip();
            let array = |texts: Vec<&str>| format!("ARRAY['{}']", texts.join("', '"));
            STORE
                .replace("$1", &array(scopes))
                .replace("$2", &array(keys))
                .replace("$3", &format!("'{mark}'"))
                .replace("$4", &format!("decode('{}', 'hex')", hex(result)))
                + "; "
        });
        let prove = PROVE
            .replace("$1", &format!("'{}'", row.scope))
            .replace("$2", &format!("'{}'", row.key))
            .replace("$3", &format!("'{mark}'"));
        let store = store.unwrap_or_default();
        let release = format!("{store}{prove}; {}", nested::release(*savepoint));
        match raw_sql(sql(&release, row.table, '"'))
            .fetch_all(&mut **tx)
            .await
        {
            Ok(rows) => {
                nested::pop(tx);
                let proof = rows.first().map(|row| row.try_get(0)).transpose();
                proven(proof.map(Option::flatten), mark)
            }
            Err(error) => {
                nested::discard(tx, *savepoint).await;
                Err(unproven(error, lost))
            }
        }
    }

    async fn roll_back(tx: &mut Transaction<'_, Self>, savepoint: &Depth) -> Result<(), Unproven> {
        let rolled_back = nested::roll_back(tx, *savepoint).await;
        rolled_back.map_err(|error| unproven(error, lost))
    }

    fn cut(tx: &mut Transaction<'_, Self>, savepoint: &Depth) {
        nested::cut(tx, *savepoint);
    }

    fn begin(options: &Options) -> Result<Begin, &'static str> {
        let isolation = options.isolation.map(Isolation::sql);
        let begin = isolation.map_or_else(
            || "BEGIN".to_owned(),
            |isolation| format!("BEGIN ISOLATION LEVEL {isolation}"),
        );
        // 0 would switch a timeout off.
        let set = |name: &str, value: Duration| {
            let milliseconds = value.as_millis().clamp(1, i32::MAX as u128);
            format!("SET LOCAL {name} = {milliseconds}")
        };
        let lock = options.lock_timeout.map(|value| set("lock_timeout", value));
        let statement = options
            .statement_timeout
            .map(|value| set("statement_timeout", value));
        let statements: Vec<_> = [Some(begin), lock, statement]
            .into_iter()
            .flatten()
            .collect();
        Ok(Begin {
            statement: statements.join("; "),
            restore: None,
        })
    }

    async fn restore(conn: &mut PgConnection, statement: String) -> Result<(), sqlx::Error> {
        conn.execute(AssertSqlSafe(statement)).await.map(drop)
    }

    fn schema(table: &Table) -> Vec<String> {
        let schema = table
            .schema()
            .map(|schema| format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\""));
        let create = CREATE.replace("{table}", &table.quoted('"'));
        schema
            .into_iter()
            .chain([create, upkeep::postgres_index(table)])
            .collect()
    }

    async fn create(conn: &mut PgConnection, table: &Table) -> Result<(), sqlx::Error> {
        let schema = match table.schema() {
            Some(schema) => {
                let exists: bool = query_scalar(SCHEMA_EXISTS)
                    .bind(schema)
                    .fetch_one(&mut *conn)
                    .await?;
                (!exists).then(|| format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\";"))
            }
            None => None,
        };
        // Sent together, the statements are one transaction.
        let create = format!("{LOCK_SCHEMA}; {} {CREATE}", schema.unwrap_or_default());
        raw_sql(sql(&create, table, '"'))
            .execute(conn)
            .await
            .map(drop)
    }

    async fn inspect(
        conn: &mut PgConnection,
        table: &Table,
    ) -> Result<Option<Vec<String>>, sqlx::Error> {
        let name = table.quoted('"');
        let columns = query(COLUMNS).bind(&name).fetch_all(&mut *conn).await?;
        let columns = columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        if columns.is_empty() {
            return Ok(None);
        }
        let unique = query_scalar(UNIQUE)
            .bind(&name)
            .fetch_one(&mut *conn)
            .await?;
        let (is_ordinary, is_rewritten) = query_as(RELATION).bind(&name).fetch_one(conn).await?;
        Ok(Some(faults(&columns, unique, is_ordinary, is_rewritten)))
    }
}

fn earlier(row: &PgRow) -> Result<Earlier, sqlx::Error> {
    Ok(Earlier {
        processed_at: row.try_get(0)?,
        age: row.try_get(1)?,
        fingerprint: row.try_get(2)?,
        result: row.try_get(3)?,
    })
}

/// Puts a transaction that sqlx rolled back for a savepoint that failed back to
/// what it was: open, and aborted.
async fn abort(tx: &mut Transaction<'_, Postgres>) {
    let begun = <Postgres as sqlx::Database>::TransactionManager::begin(tx, None).await;
    if begun.is_ok() {
        let _ = tx.execute("ROLLBACK TO SAVEPOINT idempotent_aborted").await;
    }
}

fn proven(proof: Result<Option<String>, sqlx::Error>, mark: &String) -> Result<(), Unproven> {
    match proof {
        Ok(Some(proof)) if proof == *mark => Ok(()),
        Ok(Some(_)) => Err(Unproven::Lost(Lost::Ended)),
        Ok(None) => Err(Unproven::Lost(Lost::RolledBack)),
        Err(error) => Err(unproven(error, lost)),
    }
}

fn lost(error: &sqlx::Error) -> Option<Lost> {
    match error.as_database_error()?.code()?.as_ref() {
        IN_FAILED_TRANSACTION => Some(Lost::Aborted),
        NO_ACTIVE_TRANSACTION | NO_SUCH_SAVEPOINT => Some(Lost::Ended),
        _ => None,
    }
}
