//! Postgres: one pruner at a time, by a lock that ends with the batch.

use sqlx::error::DatabaseError;
use sqlx::postgres::{PgConnection, PgRow, Postgres};
use sqlx::{Row as _, query, query_scalar, raw_sql};

use super::super::sql;
use super::{Due, Found, Upkeep};
use crate::table::Table;

/// `now()`, not `clock_timestamp()`, which changes within a statement and so
/// cannot bound an index scan; nor can an `OR` in a generic plan.
const LOOK_EXPIRED: &str = "SELECT to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') \
     FROM {table} WHERE expires_at <= now() AND expires_at >= coalesce($1::timestamptz, '-infinity') \
     ORDER BY expires_at LIMIT 1";
const LOOK_OLDER: &str = "SELECT key FROM {table} WHERE scope = $2 AND key >= coalesce($1, '') \
     AND expires_at IS NULL AND processed_at <= now() - $3 * interval '1 microsecond' ORDER BY key LIMIT 1";
/// The lock is asked for once, before a row is read.
const PRUNE: &str = "WITH turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(hashtextextended(\
     'idempotent-runtime pruner ' || '{table}'::regclass::oid, 0)) AS ours), \
     due AS MATERIALIZED (SELECT ctid FROM {table} WHERE (SELECT ours FROM turn) AND {due} LIMIT $2{skip}), \
     gone AS (DELETE FROM {table} AS t USING due WHERE t.ctid = due.ctid RETURNING 1) \
     SELECT CASE WHEN ours THEN (SELECT count(*) FROM gone) END FROM turn";
/// It takes the right to UPDATE, that of any column. Without it a batch waits for
/// who has locked a row: no claim does.
const SKIP: &str = " FOR UPDATE SKIP LOCKED";
const MAY_SKIP: &str = "SELECT has_any_column_privilege('{table}'::regclass, 'UPDATE')";
const EXPIRED: &str = "expires_at <= now() AND expires_at >= $1::timestamptz ORDER BY expires_at";
const OLDER: &str = "scope = $3 AND key >= $1 AND expires_at IS NULL \
     AND processed_at <= now() - $4 * interval '1 microsecond' ORDER BY key";
const LOOK_UP: &str = "SELECT round(extract(epoch FROM processed_at) * 1000000)::bigint, \
     round(extract(epoch FROM expires_at) * 1000000)::bigint, fingerprint IS NOT NULL, result \
     FROM {table} WHERE scope = $1 AND key = $2";
const FORGET: &str = "DELETE FROM {table} WHERE scope = $1 AND key = $2";
const HAS_INDEX: &str = "SELECT EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid \
     AND a.attnum = i.indkey[0] WHERE i.indrelid = to_regclass($1) AND i.indisvalid AND a.attname = 'expires_at')";
/// Rows without an expiry, and claims of them, do not pay for it.
const INDEX: &str =
    "CREATE INDEX IF NOT EXISTS {index} ON {table} (expires_at) WHERE expires_at IS NOT NULL";
/// Claims queue up behind one who waits for the table: not for long.
const ADD_INDEX: &str = "SELECT pg_advisory_xact_lock(hashtextextended('idempotent-runtime schema', 0)); \
     SET LOCAL lock_timeout = '3s'; ";

// SQLSTATE, appendix A of the Postgres manual.
const INSUFFICIENT_PRIVILEGE: &str = "42501";
const LOCK_NOT_AVAILABLE: &str = "55P03";
const READ_ONLY: &str = "25006";

impl Upkeep for Postgres {
    async fn look(
        conn: &mut PgConnection,
        table: &Table,
        due: &Due,
        from: Option<&str>,
    ) -> Result<Option<String>, sqlx::Error> {
        let look = match due {
            Due::Expired => query_scalar(sql(LOOK_EXPIRED, table, '"')).bind(from),
            Due::Older { scope, age } => query_scalar(sql(LOOK_OLDER, table, '"'))
                .bind(from)
                .bind(scope)
                .bind(age),
        };
        look.fetch_optional(conn).await
    }

    async fn prune(
        conn: &mut PgConnection,
        table: &Table,
        due: &Due,
        from: &str,
        limit: u32,
    ) -> Result<Option<u64>, sqlx::Error> {
        let condition = match due {
            Due::Expired => EXPIRED,
            Due::Older { .. } => OLDER,
        };
        let may_skip: bool = query_scalar(sql(MAY_SKIP, table, '"'))
            .fetch_one(&mut *conn)
            .await?;
        let prune = PRUNE
            .replace("{due}", condition)
            .replace("{skip}", if may_skip { SKIP } else { "" });
        let mut prune = query_scalar(sql(&prune, table, '"'))
            .bind(from)
            .bind(i64::from(limit));
        if let Due::Older { scope, age } = due {
            prune = prune.bind(scope).bind(age);
        }
        let rows: Option<i64> = prune.fetch_one(conn).await?;
        Ok(rows.map(|rows| rows.try_into().unwrap_or(0)))
    }

    async fn look_up(
        conn: &mut PgConnection,
        table: &Table,
        scope: &str,
        key: &str,
    ) -> Result<Option<Found>, sqlx::Error> {
        let row = query(sql(LOOK_UP, table, '"'))
            .bind(scope)
            .bind(key)
            .fetch_optional(conn)
            .await?;
        row.as_ref().map(found).transpose()
    }

    async fn forget(
        conn: &mut PgConnection,
        table: &Table,
        scope: &str,
        key: &str,
    ) -> Result<bool, sqlx::Error> {
        let done = query(sql(FORGET, table, '"'))
            .bind(scope)
            .bind(key)
            .execute(conn)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    async fn add_index(conn: &mut PgConnection, table: &Table) -> Result<(), sqlx::Error> {
        let has_index: bool = query_scalar(HAS_INDEX)
            .bind(table.quoted('"'))
            .fetch_one(&mut *conn)
            .await?;
        if has_index {
            return Ok(());
        }
        // Sent together, the statements are one transaction.
        let add = ADD_INDEX.to_owned() + &index(table);
        match raw_sql(sql(&add, table, '"')).execute(conn).await {
            Err(error) if !may_not(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// The statement that makes the index. It stands in the table's schema; its name
/// is as long as Postgres allows.
pub(in crate::store) fn index(table: &Table) -> String {
    const LONGEST: usize = 63 - "_expires_at".len();

    let name: String = table.name().chars().take(LONGEST).collect();
    INDEX
        .replace("{index}", &format!("\"{name}_expires_at\""))
        .replace("{table}", &table.quoted('"'))
}

fn found(row: &PgRow) -> Result<Found, sqlx::Error> {
    Ok(Found {
        processed_at: row.try_get(0)?,
        expires_at: row.try_get(1)?,
        has_fingerprint: row.try_get(2)?,
        result: row.try_get(3)?,
    })
}

fn may_not(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| {
        [INSUFFICIENT_PRIVILEGE, LOCK_NOT_AVAILABLE, READ_ONLY].contains(&&*code)
    })
}
