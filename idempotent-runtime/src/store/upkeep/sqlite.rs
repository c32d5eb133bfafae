//! SQLite: there is one writer, so that a batch has the table to itself.

use sqlx::error::DatabaseError;
use sqlx::sqlite::{Sqlite, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Executor, Row as _, query, query_scalar};

use super::super::sql;
use super::{Due, Found, Upkeep};
use crate::table::Table;

/// Microseconds since 1970. `julianday` counts days; 2440587.5 is 1970-01-01.
const NOW: &str = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)";
const LOOK_EXPIRED: &str = "SELECT CAST(expires_at AS TEXT) FROM {table} WHERE expires_at <= {now} \
     AND expires_at >= CAST(coalesce(?1, 0) AS INTEGER) ORDER BY expires_at LIMIT 1";
const LOOK_OLDER: &str = "SELECT key FROM {table} WHERE scope = ?2 AND key >= coalesce(?1, '') \
     AND expires_at IS NULL AND processed_at <= {now} - ?3 ORDER BY key LIMIT 1";
const PRUNE: &str = "DELETE FROM {table} WHERE (scope, key) IN \
     (SELECT scope, key FROM {table} WHERE {due} LIMIT ?2)";
const EXPIRED: &str =
    "expires_at <= {now} AND expires_at >= CAST(?1 AS INTEGER) ORDER BY expires_at";
const OLDER: &str =
    "scope = ?3 AND key >= ?1 AND expires_at IS NULL AND processed_at <= {now} - ?4 ORDER BY key";
const LOOK_UP: &str = "SELECT processed_at, expires_at, fingerprint IS NOT NULL, result \
     FROM {table} WHERE scope = ?1 AND key = ?2";
const FORGET: &str = "DELETE FROM {table} WHERE scope = ?1 AND key = ?2";
const HAS_INDEX: &str = "SELECT count(*) > 0 FROM pragma_index_list(?1, ?2) AS l \
     JOIN pragma_index_xinfo(l.name, ?2) AS x WHERE x.seqno = 0 AND x.name = 'expires_at'";
/// Rows without an expiry, and claims of them, do not pay for it.
const INDEX: &str =
    "CREATE INDEX IF NOT EXISTS {index} ON \"{name}\" (expires_at) WHERE expires_at IS NOT NULL";

/// `SQLITE_READONLY`; the low byte is the primary code.
const READ_ONLY: u32 = 8;

impl Upkeep for Sqlite {
    async fn look(
        conn: &mut SqliteConnection,
        table: &Table,
        due: &Due,
        from: Option<&str>,
    ) -> Result<Option<String>, sqlx::Error> {
        let look = match due {
            Due::Expired => query_scalar(timed(LOOK_EXPIRED, table)).bind(from),
            Due::Older { scope, age } => query_scalar(timed(LOOK_OLDER, table))
                .bind(from)
                .bind(scope)
                .bind(age),
        };
        look.fetch_optional(conn).await
    }

    async fn prune(
        conn: &mut SqliteConnection,
        table: &Table,
        due: &Due,
        from: &str,
        limit: u32,
    ) -> Result<Option<u64>, sqlx::Error> {
        let condition = match due {
            Due::Expired => EXPIRED,
            Due::Older { .. } => OLDER,
        };
        let prune = PRUNE.replace("{due}", condition);
        let mut prune = query(timed(&prune, table)).bind(from).bind(limit);
        if let Due::Older { scope, age } = due {
            prune = prune.bind(scope).bind(age);
        }
        let done = prune.execute(conn).await?;
        Ok(Some(done.rows_affected()))
    }

    async fn look_up(
        conn: &mut SqliteConnection,
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
        conn: &mut SqliteConnection,
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

    async fn add_index(conn: &mut SqliteConnection, table: &Table) -> Result<(), sqlx::Error> {
        let has_index: bool = query_scalar(HAS_INDEX)
            .bind(table.name())
            .bind(table.schema().unwrap_or("main"))
            .fetch_one(&mut *conn)
            .await?;
        if has_index {
            return Ok(());
        }
        match conn.execute(AssertSqlSafe(index(table))).await {
            Err(error) if !may_not(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// The statement that makes the index, in the table's schema.
pub(in crate::store) fn index(table: &Table) -> String {
    let name = table.name();
    let schema = table.schema().map(|schema| format!("\"{schema}\"."));
    let index = format!("{}\"{name}_expires_at\"", schema.unwrap_or_default());
    INDEX.replace("{index}", &index).replace("{name}", name)
}

fn timed(template: &str, table: &Table) -> AssertSqlSafe<String> {
    sql(&template.replace("{now}", NOW), table, '"')
}

fn found(row: &SqliteRow) -> Result<Found, sqlx::Error> {
    Ok(Found {
        processed_at: row.try_get(0)?,
        expires_at: row.try_get(1)?,
        has_fingerprint: row.try_get(2)?,
        result: row.try_get(3)?,
    })
}

fn may_not(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.and_then(|code| code.parse::<u32>().ok())
        .is_some_and(|code| code & 0xff == READ_ONLY)
}
