//! Postgres: one statement claims, the transaction id proves.

use std::time::Duration;

use sqlx::postgres::{PgConnection, Postgres};
use sqlx::{AssertSqlSafe, Connection, Executor, Transaction, query, query_scalar};
use sqlx_core::transaction::TransactionManager;

use super::forget::forget_if_dropped;
use super::nested::{self, Depth};
use super::{Backend, Row, Unproven, column, sql, unproven};
use crate::attempts::{Begin, Isolation, Options};
use crate::error::Lost;
use crate::table::{Table, faults};

/// The claim's mark: the transaction, and the (sub)transaction that wrote the
/// row. The second tells our row from that of another consumer who claimed the
/// key after this transaction had rolled back past its claim.
const CLAIM: &str = "INSERT INTO {table} (scope, key) VALUES ($1, $2) \
     ON CONFLICT (scope, key) DO NOTHING RETURNING pg_current_xact_id()::text || '/' || xmin::text";
const PROVE: &str = "SELECT pg_current_xact_id_if_assigned()::text || '/' || xmin::text \
     FROM {table} WHERE scope = $1 AND key = $2";
const REMOVE: &str = "DELETE FROM {table} WHERE scope = $1 AND key = $2 \
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
     t.typname = 'text' OR t.typname = 'varchar' \
     AND (a.atttypmod < 0 OR a.atttypmod - 4 >= CASE a.attname WHEN 'scope' THEN 128 ELSE 255 END), a.attnotnull, \
     a.atthasdef OR a.attidentity <> '' OR a.attgenerated <> '', coalesce(c.collisdeterministic, true) \
     FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation c ON c.oid = a.attcollation \
     WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";
const UNIQUE: &str = "SELECT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = to_regclass($1) \
     AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL \
     AND i.indnkeyatts = 2 AND (SELECT array_agg(a.attname::text ORDER BY a.attname) FROM pg_attribute a \
     WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::smallint[])) @> ARRAY['key', 'scope'])";

// SQLSTATE, appendix A of the Postgres manual.
const IN_FAILED_TRANSACTION: &str = "25P02";
const NO_ACTIVE_TRANSACTION: &str = "25P01";
const NO_SUCH_SAVEPOINT: &str = "3B001";

impl Backend for Postgres {
    type Mark = String;
    type Savepoint = Depth;

    async fn claim(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
    ) -> Result<Option<String>, sqlx::Error> {
        query_scalar(sql(CLAIM, row.table, '"'))
            .bind(row.scope)
            .bind(row.key)
            .fetch_optional(&mut **tx)
            .await
    }

    async fn prove(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        mark: &String,
    ) -> Result<(), Unproven> {
        let proof = query_scalar::<_, Option<String>>(sql(PROVE, row.table, '"'))
            .bind(row.scope)
            .bind(row.key)
            .fetch_optional(&mut **tx)
            .await;
        match proof {
            Ok(Some(Some(proof))) if proof == *mark => Ok(()),
            Ok(Some(_)) => Err(Unproven::Lost(Lost::Ended)),
            Ok(None) => Err(Unproven::Lost(Lost::RolledBack)),
            Err(error) => Err(unproven(error, lost)),
        }
    }

    async fn remove(
        tx: &mut Transaction<'_, Self>,
        row: Row<'_>,
        mark: &String,
    ) -> Result<(), Unproven> {
        let removed = query(sql(REMOVE, row.table, '"'))
            .bind(row.scope)
            .bind(row.key)
            .bind(mark)
            .execute(&mut **tx)
            .await;
        match removed {
            Ok(done) if done.rows_affected() == 0 => Err(Unproven::Lost(Lost::Ended)),
            Ok(_) => Ok(()),
            // An aborted transaction, which cannot commit anything.
            Err(error) => Err(Unproven::Failed(error)),
        }
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
        // sqlx's `begin`, dropped before it is done, rolls back the caller's
        // transaction; forgotten instead, it leaves an empty savepoint behind.
        forget_if_dropped(<Self as sqlx::Database>::TransactionManager::begin(
            tx, None,
        ))
        .await?;
        Ok(Depth::of(tx))
    }

    async fn release(tx: &mut Transaction<'_, Self>, savepoint: &Depth) -> Result<(), Unproven> {
        nested::release(tx, savepoint, lost).await
    }

    async fn roll_back(tx: &mut Transaction<'_, Self>, savepoint: &Depth) -> Result<(), Unproven> {
        nested::roll_back(tx, savepoint, lost).await
    }

    fn cut(tx: &mut Transaction<'_, Self>, savepoint: &Depth) {
        nested::cut(tx, savepoint);
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
        schema.into_iter().chain([create]).collect()
    }

    async fn create(conn: &mut PgConnection, table: &Table) -> Result<(), sqlx::Error> {
        let mut tx = conn.begin().await?;
        tx.execute(LOCK_SCHEMA).await?;
        if let Some(schema) = table.schema()
            && !query_scalar::<_, bool>(SCHEMA_EXISTS)
                .bind(schema)
                .fetch_one(&mut *tx)
                .await?
        {
            tx.execute(AssertSqlSafe(format!("CREATE SCHEMA \"{schema}\"")))
                .await?;
        }
        tx.execute(sql(CREATE, table, '"')).await?;
        tx.commit().await
    }

    async fn inspect(conn: &mut PgConnection, table: &Table) -> Result<Vec<String>, sqlx::Error> {
        let name = table.quoted('"');
        let columns = query(COLUMNS).bind(&name).fetch_all(&mut *conn).await?;
        let columns = columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let unique = query_scalar(UNIQUE).bind(&name).fetch_one(conn).await?;
        Ok(faults(&columns, unique))
    }
}

fn lost(error: &sqlx::Error) -> Option<Lost> {
    match error.as_database_error()?.code()?.as_ref() {
        IN_FAILED_TRANSACTION => Some(Lost::Aborted),
        NO_ACTIVE_TRANSACTION | NO_SUCH_SAVEPOINT => Some(Lost::Ended),
        _ => None,
    }
}
