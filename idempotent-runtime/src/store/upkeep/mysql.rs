//! MariaDB: what another session has locked is passed over, since 10.6 (MySQL:
//! since 8.0.1). Older servers do not read that word, and wait.

use sqlx::mysql::{MySql, MySqlConnection, MySqlDatabaseError, MySqlRow};
use sqlx::{Executor, Row as _, query, query_scalar};

use super::super::sql;
use super::{Due, Found, Upkeep};
use crate::table::Table;

const LOOK_EXPIRED: &str = "SELECT CAST(expires_at AS char) FROM {table} WHERE expires_at <= utc_timestamp(6) \
     AND expires_at >= coalesce(?, '1000-01-01') ORDER BY expires_at LIMIT 1";
const LOOK_OLDER: &str = "SELECT `key` FROM {table} WHERE `key` >= coalesce(?, '') AND scope = ? \
     AND expires_at IS NULL AND processed_at <= utc_timestamp(6) - INTERVAL ? MICROSECOND ORDER BY `key` LIMIT 1";
/// At REPEATABLE READ it would lock the gaps that claims insert into.
const ISOLATION: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED";
/// `DELETE` itself knows no `SKIP LOCKED`. The derived table is read first: the
/// rows that it locks are those that are deleted.
const PRUNE: &str = "DELETE t FROM (SELECT scope, `key` FROM {table} WHERE {due} LIMIT ? \
     FOR UPDATE /*!80001 SKIP LOCKED */ /*M!100600 SKIP LOCKED */) AS due \
     STRAIGHT_JOIN {table} AS t USING (scope, `key`)";
const EXPIRED: &str = "expires_at <= utc_timestamp(6) AND expires_at >= ? ORDER BY expires_at";
const OLDER: &str = "`key` >= ? AND scope = ? AND expires_at IS NULL \
     AND processed_at <= utc_timestamp(6) - INTERVAL ? MICROSECOND ORDER BY `key`";
const LOOK_UP: &str = "SELECT timestampdiff(MICROSECOND, '1970-01-01', processed_at), \
     timestampdiff(MICROSECOND, '1970-01-01', expires_at), fingerprint IS NOT NULL, result \
     FROM {table} WHERE scope = ? AND `key` = ?";
const FORGET: &str = "DELETE FROM {table} WHERE scope = ? AND `key` = ?";
const HAS_INDEX: &str = "SELECT count(*) > 0 FROM information_schema.statistics \
     WHERE table_schema = coalesce(?, database()) AND table_name = ? \
     AND column_name = 'expires_at' AND seq_in_index = 1";
/// Claims queue up behind one who waits for the table: not for long.
const ADD_INDEX: &str = "/*M!100300 SET STATEMENT lock_wait_timeout = 3 FOR */ CREATE INDEX expires_at ON {table} (expires_at)";

const LOCK_WAIT_TIMEOUT: u16 = 1205;
/// A key of that name: another process was faster.
const DUPLICATE_KEY_NAME: u16 = 1061;
/// No right to the database, the table, the statement; a server that is read-only.
const MAY_NOT: [u16; 4] = [1044, 1142, 1227, 1290];

impl Upkeep for MySql {
    async fn look(
        conn: &mut MySqlConnection,
        table: &Table,
        due: &Due,
        from: Option<&str>,
    ) -> Result<Option<String>, sqlx::Error> {
        let look = match due {
            Due::Expired => query_scalar(sql(LOOK_EXPIRED, table, '`')).bind(from),
            Due::Older { scope, age } => query_scalar(sql(LOOK_OLDER, table, '`'))
                .bind(from)
                .bind(scope)
                .bind(age),
        };
        look.fetch_optional(conn).await
    }

    async fn prune(
        conn: &mut MySqlConnection,
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
        let mut prune = query(sql(&prune, table, '`')).bind(from);
        if let Due::Older { scope, age } = due {
            prune = prune.bind(scope).bind(age);
        }
        // For the next transaction, which is the next statement.
        conn.execute(ISOLATION).await?;
        let done = prune.bind(limit).execute(conn).await?;
        Ok(Some(done.rows_affected()))
    }

    async fn look_up(
        conn: &mut MySqlConnection,
        table: &Table,
        scope: &str,
        key: &str,
    ) -> Result<Option<Found>, sqlx::Error> {
        let row = query(sql(LOOK_UP, table, '`'))
            .bind(scope)
            .bind(key)
            .fetch_optional(conn)
            .await?;
        row.as_ref().map(found).transpose()
    }

    async fn forget(
        conn: &mut MySqlConnection,
        table: &Table,
        scope: &str,
        key: &str,
    ) -> Result<bool, sqlx::Error> {
        let done = query(sql(FORGET, table, '`'))
            .bind(scope)
            .bind(key)
            .execute(conn)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    async fn add_index(conn: &mut MySqlConnection, table: &Table) -> Result<(), sqlx::Error> {
        let has_index: bool = query_scalar(HAS_INDEX)
            .bind(table.schema())
            .bind(table.name())
            .fetch_one(&mut *conn)
            .await?;
        if has_index {
            return Ok(());
        }
        match conn.execute(sql(ADD_INDEX, table, '`')).await {
            Err(error) if !may_not(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

fn found(row: &MySqlRow) -> Result<Found, sqlx::Error> {
    Ok(Found {
        processed_at: row.try_get(0)?,
        expires_at: row.try_get(1)?,
        has_fingerprint: row.try_get(2)?,
        result: row.try_get(3)?,
    })
}

fn may_not(error: &sqlx::Error) -> bool {
    let error = error
        .as_database_error()
        .and_then(|error| error.try_downcast_ref::<MySqlDatabaseError>());
    error.is_some_and(|error| {
        [LOCK_WAIT_TIMEOUT, DUPLICATE_KEY_NAME].contains(&error.number())
            || MAY_NOT.contains(&error.number())
    })
}
