//! The table: making it, and refusing tables that cannot do its work.

use std::time::Duration;

use idempotent_runtime::{
    Outcome, Table, idempotent, lookup, migrate, pruner, schema_sql, transact, verify_schema,
};
use idempotent_tests::{
    AppError, Double, Engine, Fresh, Guarded, Kind, Recorder, Replayed, ReplayedUnderSavepoint,
    Savepoint, Verify,
};
use sqlx::{Pool, Transaction};
use tokio::task::JoinSet;

on_every_database!(
    migrating_twice_is_once,
    migrating_from_eight_tasks_at_once_is_once,
    schema_sql_makes_the_same_table,
    tables_that_cannot_hold_keys_are_refused_with_the_way_out,
    tables_that_can_hold_keys_are_accepted,
    a_missing_table_is_refused,
    an_added_nullable_column_is_accepted,
    columns_added_under_a_warm_connection_go_unnoticed,
    a_table_of_another_schema,
);

async fn migrating_twice_is_once<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    migrate(&pool).await.unwrap();
    db.run(&insert::<DB>("processed_messages", "1")).await;
    migrate(&pool).await.unwrap();
    verify_schema(&pool).await.unwrap();
    assert_eq!(db.rows("processed_messages").await, 1);
}

fn insert<DB: Engine>(table: &str, key: &str) -> String {
    let column = if DB::KIND == Kind::MariaDb {
        "`key`"
    } else {
        "key"
    };
    format!("INSERT INTO {table} (scope, {column}) VALUES ('s', '{key}')")
}

async fn migrating_from_eight_tasks_at_once_is_once<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(8).await;
    for round in 0..5 {
        let mut tasks = JoinSet::new();
        for _ in 0..8 {
            let pool = pool.clone();
            let table = Table::named(format!("inbox_{round}")).unwrap();
            tasks.spawn(async move { table.migrate(&pool).await });
        }
        for migrated in tasks.join_all().await {
            migrated.unwrap();
        }
        assert_eq!(db.rows(&format!("inbox_{round}")).await, 0);
    }
    if DB::KIND == Kind::Postgres {
        let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' \
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        assert_eq!(db.number(locks).await, 0);
    }
}

async fn schema_sql_makes_the_same_table<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    db.run(&schema_sql::<DB>()).await;
    verify_schema(&pool).await.unwrap();
    let by_hand = shape(db, "processed_messages").await;
    Table::named("migrated")
        .unwrap()
        .migrate(&pool)
        .await
        .unwrap();
    assert_eq!(by_hand, shape(db, "migrated").await);
    assert!(by_hand.len() >= 6, "{by_hand:?}");
}

/// Columns and constraints of a table, as text.
async fn shape<DB: Engine>(db: &Fresh<DB>, table: &str) -> Vec<String> {
    let shape = match DB::KIND {
        Kind::Postgres => format!(
            "SELECT concat_ws(' ', column_name, data_type, collation_name, is_nullable, column_default) \
             FROM information_schema.columns WHERE table_name = '{table}' \
             UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '{table}'::regclass"
        ),
        Kind::MariaDb => format!(
            "SELECT CONVERT(concat_ws(' ', column_name, column_type, collation_name, is_nullable, column_default, \
             column_key) USING utf8mb4) FROM information_schema.columns \
             WHERE table_schema = database() AND table_name = '{table}' ORDER BY ordinal_position"
        ),
        Kind::Sqlite => format!(
            "SELECT name || ' ' || type || ' ' || \"notnull\" || ' ' || coalesce(dflt_value, '') || ' ' || pk \
             FROM pragma_table_info('{table}')"
        ),
    };
    db.texts(&shape).await
}

/// What is wrong with a table, the statements that make it, and a word of the
/// complaint.
type Refused = (&'static str, &'static str, &'static str);

const POSTGRES: &[Refused] = &[
    (
        "the id of an article",
        "CREATE TABLE t (id bigint PRIMARY KEY)",
        "no column `scope`",
    ),
    (
        "no unique key",
        "CREATE TABLE t (scope text NOT NULL, key text NOT NULL, {rest})",
        "no unique key",
    ),
    (
        "a key of one column",
        "CREATE TABLE t (scope text NOT NULL, key text PRIMARY KEY, {rest})",
        "no unique key",
    ),
    (
        "a key of three columns",
        "CREATE TABLE t (scope text NOT NULL, key text NOT NULL, tenant int NOT NULL DEFAULT 0, {rest}, \
      PRIMARY KEY (scope, key, tenant))",
        "no unique key",
    ),
    (
        "a partial index",
        "CREATE TABLE t (scope text NOT NULL, key text NOT NULL, {rest}); \
      CREATE UNIQUE INDEX ON t (scope, key) WHERE result IS NULL",
        "no unique key",
    ),
    (
        "an index of an expression",
        "CREATE TABLE t (scope text NOT NULL, key text NOT NULL, {rest}); \
      CREATE UNIQUE INDEX ON t (scope, lower(key))",
        "no unique key",
    ),
    (
        "a deferred key",
        "CREATE TABLE t (scope text NOT NULL, key text NOT NULL, {rest}, \
      PRIMARY KEY (scope, key) DEFERRABLE INITIALLY DEFERRED)",
        "no unique key",
    ),
    (
        "a key that may be null",
        "CREATE TABLE t (scope text NOT NULL, key text, {rest}, UNIQUE (scope, key))",
        "may be NULL",
    ),
    (
        "a numeric key",
        "CREATE TABLE t (scope text NOT NULL, key bigint NOT NULL, {rest}, PRIMARY KEY (scope, key))",
        "type bigint",
    ),
    (
        "an extra column without a default",
        "CREATE TABLE t (scope text NOT NULL, key text NOT NULL, tenant int NOT NULL, {rest}, \
      PRIMARY KEY (scope, key))",
        "`tenant` is NOT NULL without a default",
    ),
    (
        "letters that are equal",
        "CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false); \
      CREATE TABLE t (scope text NOT NULL, key text COLLATE folded NOT NULL, {rest}, PRIMARY KEY (scope, key))",
        "collation",
    ),
    (
        "blanks that are cut",
        "CREATE TABLE t (scope text NOT NULL, key char(255) NOT NULL, {rest}, PRIMARY KEY (scope, key))",
        "type character(255)",
    ),
    (
        "keys that are cut without a word",
        "CREATE TABLE t (scope text NOT NULL, key name NOT NULL, {rest}, PRIMARY KEY (scope, key))",
        "type name",
    ),
    (
        "keys that do not fit",
        "CREATE TABLE t (scope text NOT NULL, key varchar(254) NOT NULL, {rest}, PRIMARY KEY (scope, key))",
        "type character varying(254)",
    ),
    (
        "scopes that do not fit",
        "CREATE TABLE t (scope varchar(127) NOT NULL, key varchar(255) NOT NULL, {rest}, PRIMARY KEY (scope, key))",
        "type character varying(127)",
    ),
    (
        "a unique key on another column that includes the key",
        "CREATE TABLE t (scope text NOT NULL, key text NOT NULL, x int NOT NULL DEFAULT 1, {rest}, \
      UNIQUE (scope, x) INCLUDE (key))",
        "no unique key",
    ),
    (
        "a partitioned table",
        "CREATE TABLE t (scope text NOT NULL, key text NOT NULL, {rest}, PRIMARY KEY (scope, key)) \
      PARTITION BY HASH (scope, key); \
      CREATE TABLE t_0 PARTITION OF t FOR VALUES WITH (modulus 1, remainder 0)",
        "not an ordinary table",
    ),
    (
        "a view",
        "CREATE TABLE below (scope text NOT NULL, key text NOT NULL, {rest}, PRIMARY KEY (scope, key)); \
      CREATE VIEW t AS SELECT * FROM below",
        "not an ordinary table",
    ),
    (
        "a trigger that may skip a row",
        "CREATE TABLE t (scope text NOT NULL, key text NOT NULL, {rest}, PRIMARY KEY (scope, key)); \
      CREATE FUNCTION skips() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
      CREATE TRIGGER skips BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION skips()",
        "a trigger",
    ),
    (
        "a time that is text",
        "CREATE TABLE t (scope text NOT NULL, key text NOT NULL, processed_at timestamptz NOT NULL DEFAULT now(), \
      expires_at text, fingerprint bytea, result bytea, PRIMARY KEY (scope, key))",
        "`expires_at` has type text",
    ),
    (
        "a time without a zone",
        "CREATE TABLE t (scope text NOT NULL, key text NOT NULL, processed_at timestamp NOT NULL DEFAULT now(), \
      expires_at timestamptz, fingerprint bytea, result bytea, PRIMARY KEY (scope, key))",
        "`processed_at` has type timestamp without time zone",
    ),
    (
        "a numeric fingerprint",
        "CREATE TABLE t (scope text NOT NULL, key text NOT NULL, processed_at timestamptz NOT NULL DEFAULT now(), \
      expires_at timestamptz, fingerprint int, result bytea, PRIMARY KEY (scope, key))",
        "`fingerprint` has type integer",
    ),
    (
        "a result that is text",
        "CREATE TABLE t (scope text NOT NULL, key text NOT NULL, processed_at timestamptz NOT NULL DEFAULT now(), \
      expires_at timestamptz, fingerprint bytea, result text, PRIMARY KEY (scope, key))",
        "`result` has type text",
    ),
    (
        "a time that is not noted",
        "CREATE TABLE t (scope text NOT NULL, key text NOT NULL, processed_at timestamptz, \
      expires_at timestamptz, fingerprint bytea, result bytea, PRIMARY KEY (scope, key))",
        "`processed_at` may be NULL",
    ),
];

const MARIADB: &[Refused] = &[
    (
        "the id of an article",
        "CREATE TABLE t (id bigint PRIMARY KEY)",
        "no column `scope`",
    ),
    (
        "no unique key",
        "CREATE TABLE t (scope varchar(128) {ascii} NOT NULL, `key` varchar(255) {ascii} NOT NULL, {rest})",
        "no unique key",
    ),
    (
        "a key of one column",
        "CREATE TABLE t (scope varchar(128) {ascii} NOT NULL, `key` varchar(255) {ascii} PRIMARY KEY, {rest})",
        "no unique key",
    ),
    (
        "a key of three columns",
        "CREATE TABLE t (scope varchar(128) {ascii} NOT NULL, `key` varchar(255) {ascii} NOT NULL, \
      tenant int NOT NULL DEFAULT 0, {rest}, PRIMARY KEY (scope, `key`, tenant))",
        "no unique key",
    ),
    (
        "a key of prefixes",
        "CREATE TABLE t (scope varchar(128) {ascii} NOT NULL, `key` varchar(255) {ascii} NOT NULL, {rest}, \
      UNIQUE (scope, `key`(20)))",
        "no unique key",
    ),
    (
        "a key that may be null",
        "CREATE TABLE t (scope varchar(128) {ascii} NOT NULL, `key` varchar(255) {ascii}, {rest}, \
      UNIQUE (scope, `key`))",
        "may be NULL",
    ),
    (
        "a numeric key",
        "CREATE TABLE t (scope varchar(128) {ascii} NOT NULL, `key` bigint NOT NULL, {rest}, PRIMARY KEY (scope, `key`))",
        "type bigint",
    ),
    (
        "an extra column without a default",
        "CREATE TABLE t (scope varchar(128) {ascii} NOT NULL, `key` varchar(255) {ascii} NOT NULL, \
      tenant int NOT NULL, {rest}, PRIMARY KEY (scope, `key`))",
        "`tenant` is NOT NULL without a default",
    ),
    (
        "letters that are equal",
        "CREATE TABLE t (scope varchar(128) {ascii} NOT NULL, `key` varchar(255) COLLATE utf8mb4_general_ci NOT NULL, \
      {rest}, PRIMARY KEY (scope, `key`))",
        "collation",
    ),
    (
        "an engine without transactions",
        "CREATE TABLE t (scope varchar(128) {ascii} NOT NULL, `key` varchar(255) {ascii} NOT NULL, {rest}, \
      PRIMARY KEY (scope, `key`)) ENGINE = MyISAM",
        "it is not an ordinary table with transactions",
    ),
    (
        "keys that do not fit",
        "CREATE TABLE t (scope varchar(128) {ascii} NOT NULL, `key` varchar(64) {ascii} NOT NULL, {rest}, \
      PRIMARY KEY (scope, `key`))",
        "`key`",
    ),
    (
        "keys that are filled up",
        "CREATE TABLE t (scope binary(128) NOT NULL, `key` binary(255) NOT NULL, {rest}, \
      PRIMARY KEY (scope, `key`))",
        "`key` has type binary(255)",
    ),
    (
        "a time that is not noted",
        "CREATE TABLE t (scope varchar(128) {ascii} NOT NULL, `key` varchar(255) {ascii} NOT NULL, \
      processed_at datetime(6), expires_at datetime(6), fingerprint varbinary(40), result longblob, \
      PRIMARY KEY (scope, `key`))",
        "`processed_at` may be NULL",
    ),
    (
        "a trigger that may change a key",
        "CREATE TABLE t (scope varchar(128) {ascii} NOT NULL, `key` varchar(255) {ascii} NOT NULL, {rest}, \
      PRIMARY KEY (scope, `key`)); \
      CREATE TRIGGER changes BEFORE INSERT ON t FOR EACH ROW SET NEW.`key` = 'x'",
        "a trigger",
    ),
    (
        "a view",
        "CREATE TABLE below (scope varchar(128) {ascii} NOT NULL, `key` varchar(255) {ascii} NOT NULL, {rest}, \
      PRIMARY KEY (scope, `key`)); \
      CREATE VIEW t AS SELECT * FROM below",
        "not an ordinary table",
    ),
    (
        "a time that is text",
        "CREATE TABLE t (scope varchar(128) {ascii} NOT NULL, `key` varchar(255) {ascii} NOT NULL, \
      processed_at datetime(6) NOT NULL DEFAULT (utc_timestamp(6)), expires_at varchar(40), \
      fingerprint varbinary(40), result longblob, PRIMARY KEY (scope, `key`))",
        "`expires_at` has type varchar(40)",
    ),
    (
        "a numeric fingerprint",
        "CREATE TABLE t (scope varchar(128) {ascii} NOT NULL, `key` varchar(255) {ascii} NOT NULL, \
      processed_at datetime(6) NOT NULL DEFAULT (utc_timestamp(6)), expires_at datetime(6), \
      fingerprint int, result longblob, PRIMARY KEY (scope, `key`))",
        "`fingerprint` has type int",
    ),
];

const SQLITE: &[Refused] = &[
    (
        "the id of an article",
        "CREATE TABLE t (id INTEGER PRIMARY KEY)",
        "no column `scope`",
    ),
    (
        "no unique key",
        "CREATE TABLE t (scope TEXT NOT NULL, key TEXT NOT NULL, {rest})",
        "no unique key",
    ),
    (
        "a key of one column",
        "CREATE TABLE t (scope TEXT NOT NULL, key TEXT NOT NULL PRIMARY KEY, {rest})",
        "no unique key",
    ),
    (
        "a key of three columns",
        "CREATE TABLE t (scope TEXT NOT NULL, key TEXT NOT NULL, tenant INTEGER NOT NULL DEFAULT 0, {rest}, \
      PRIMARY KEY (scope, key, tenant))",
        "no unique key",
    ),
    (
        "a partial index",
        "CREATE TABLE t (scope TEXT NOT NULL, key TEXT NOT NULL, {rest}); \
      CREATE UNIQUE INDEX u ON t (scope, key) WHERE result IS NULL",
        "no unique key",
    ),
    (
        "a key that may be null",
        "CREATE TABLE t (scope TEXT NOT NULL, key TEXT, {rest}, PRIMARY KEY (scope, key))",
        "may be NULL",
    ),
    (
        "a numeric key",
        "CREATE TABLE t (scope TEXT NOT NULL, key NUMERIC NOT NULL, {rest}, PRIMARY KEY (scope, key))",
        "type NUMERIC",
    ),
    (
        "an extra column without a default",
        "CREATE TABLE t (scope TEXT NOT NULL, key TEXT NOT NULL, tenant INTEGER NOT NULL, {rest}, \
      PRIMARY KEY (scope, key))",
        "`tenant` is NOT NULL without a default",
    ),
    (
        "letters that are equal",
        "CREATE TABLE t (scope TEXT NOT NULL, key TEXT NOT NULL COLLATE NOCASE, {rest}, PRIMARY KEY (scope, key))",
        "no unique key",
    ),
    (
        "a trigger",
        "CREATE TABLE t (scope TEXT NOT NULL, key TEXT NOT NULL, {rest}, PRIMARY KEY (scope, key)); \
      CREATE TRIGGER skips BEFORE INSERT ON t BEGIN SELECT RAISE(IGNORE); END",
        "a trigger",
    ),
    (
        "a view",
        "CREATE TABLE below (scope TEXT NOT NULL, key TEXT NOT NULL, {rest}, PRIMARY KEY (scope, key)); \
      CREATE VIEW t AS SELECT * FROM below",
        "not an ordinary table",
    ),
    (
        "a time that is text",
        "CREATE TABLE t (scope TEXT NOT NULL, key TEXT NOT NULL, processed_at INTEGER NOT NULL DEFAULT 0, \
      expires_at TEXT, fingerprint BLOB, result BLOB, PRIMARY KEY (scope, key))",
        "`expires_at` has type TEXT",
    ),
    (
        "a numeric fingerprint",
        "CREATE TABLE t (scope TEXT NOT NULL, key TEXT NOT NULL, processed_at INTEGER NOT NULL DEFAULT 0, \
      expires_at INTEGER, fingerprint INTEGER, result BLOB, PRIMARY KEY (scope, key))",
        "`fingerprint` has type INTEGER",
    ),
    (
        "a result that is text",
        "CREATE TABLE t (scope TEXT NOT NULL, key TEXT NOT NULL, processed_at INTEGER NOT NULL DEFAULT 0, \
      expires_at INTEGER, fingerprint BLOB, result TEXT, PRIMARY KEY (scope, key))",
        "`result` has type TEXT",
    ),
];

const ASCII: &str = "CHARACTER SET ascii COLLATE ascii_bin";

/// The columns other than the keys', as they should be.
const fn rest<DB: Engine>() -> &'static str {
    match DB::KIND {
        Kind::Postgres => {
            "processed_at timestamptz NOT NULL DEFAULT now(), expires_at timestamptz, \
             fingerprint bytea, result bytea"
        }
        Kind::MariaDb => {
            "processed_at datetime(6) NOT NULL DEFAULT (utc_timestamp(6)), expires_at datetime(6), \
             fingerprint varbinary(40), result longblob"
        }
        Kind::Sqlite => {
            "processed_at INTEGER NOT NULL DEFAULT 0, expires_at INTEGER, fingerprint BLOB, result BLOB"
        }
    }
}

async fn tables_that_cannot_hold_keys_are_refused_with_the_way_out<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    let refused = match DB::KIND {
        Kind::Postgres => POSTGRES,
        Kind::MariaDb => MARIADB,
        Kind::Sqlite => SQLITE,
    };
    let table = Table::named("t").unwrap();
    for (wrong, make, word) in refused {
        db.run(
            &make
                .replace("{rest}", rest::<DB>())
                .replace("{ascii}", ASCII),
        )
        .await;
        for verified in [table.verify_schema(&pool).await, table.migrate(&pool).await] {
            let error = verified.expect_err(wrong).to_string();
            assert!(
                error.contains("table `t` cannot hold idempotency keys"),
                "{wrong}: {error}"
            );
            assert!(error.contains(word), "{wrong}: {error}");
            assert!(error.contains("Table::named"), "{wrong}: {error}");
        }
        forget(db).await;
    }
}

/// Drops `t`, whatever it is, and what it stands on.
async fn forget<DB: Engine>(db: &Fresh<DB>) {
    match DB::KIND {
        Kind::Postgres => {
            db.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
                .await;
        }
        Kind::MariaDb => {
            db.run("DROP VIEW IF EXISTS t; DROP TABLE IF EXISTS t, below")
                .await;
        }
        Kind::Sqlite => {
            // It minds what kind of thing it drops.
            let made = "SELECT 'DROP ' || type || ' ' || name FROM sqlite_master \
                 WHERE name IN ('t', 'below') ORDER BY type DESC";
            for drop in db.texts(made).await {
                db.run(&drop).await;
            }
        }
    }
}

/// Made by hand, and not as we would.
async fn tables_that_can_hold_keys_are_accepted<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    let accepted: &[&str] = match DB::KIND {
        Kind::Postgres => &[
            "CREATE TABLE t (id bigserial PRIMARY KEY, key varchar NOT NULL, scope varchar(128) NOT NULL, \
             result bytea, fingerprint bytea, expires_at timestamptz, \
             processed_at timestamptz NOT NULL DEFAULT now(), UNIQUE (key, scope))",
            "CREATE TABLE t (scope text NOT NULL, key text NOT NULL, {rest}, UNIQUE (scope, key) INCLUDE (result))",
            // One that looks on changes nothing.
            "CREATE TABLE t (scope text NOT NULL, key text NOT NULL, {rest}, PRIMARY KEY (scope, key)); \
             CREATE FUNCTION looks() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
             CREATE TRIGGER looks AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION looks()",
        ],
        Kind::MariaDb => &[
            "CREATE TABLE t (id bigint AUTO_INCREMENT PRIMARY KEY, `key` varchar(255) {ascii} NOT NULL, \
             scope varchar(200) {ascii} NOT NULL, {rest}, UNIQUE (`key`, scope))",
            "CREATE TABLE t (scope varbinary(128) NOT NULL, `key` varbinary(255) NOT NULL, {rest}, \
             PRIMARY KEY (scope, `key`))",
        ],
        Kind::Sqlite => &[
            "CREATE TABLE t (id INTEGER PRIMARY KEY, key TEXT NOT NULL, scope TEXT NOT NULL, {rest}, \
             UNIQUE (key, scope))",
        ],
    };
    for make in accepted {
        db.run(
            &make
                .replace("{rest}", rest::<DB>())
                .replace("{ascii}", ASCII),
        )
        .await;
        let table = Table::named("t").unwrap();
        table
            .verify_schema(&pool)
            .await
            .unwrap_or_else(|error| panic!("{make}: {error}"));
        table.migrate(&pool).await.unwrap();
        for expected in [Outcome::Processed(()), Outcome::Duplicate] {
            let outcome = transact!(&pool, tx => in_t(tx, 1)).await;
            assert_eq!(outcome.unwrap(), expected, "{make}");
        }
        forget(db).await;
    }
}

#[idempotent(key(id), scope = "by-hand", table = "t")]
async fn in_t<DB: Engine>(tx: &mut Transaction<'_, DB>, id: i64) -> Result<(), AppError> {
    let _ = tx;
    Ok(())
}

async fn a_missing_table_is_refused<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    let error = verify_schema(&pool).await.unwrap_err();
    assert!(
        error.to_string().contains("does not exist: run `migrate`"),
        "{error}"
    );
}

async fn an_added_nullable_column_is_accepted<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    db.run("ALTER TABLE processed_messages ADD COLUMN tenant int")
        .await;
    db.run("ALTER TABLE processed_messages ADD COLUMN note text NOT NULL DEFAULT ''")
        .await;
    verify_schema(&pool).await.unwrap();
    migrate(&pool).await.unwrap();
    let double = Double::new();
    let outcome = transact!(&pool, tx => Verify::record(tx, "1", &double))
        .await
        .unwrap();
    assert_eq!(outcome, Outcome::Processed(()));
}

#[idempotent(key(id), each = "id in ids", scope = "all")]
async fn all<DB: Engine>(tx: &mut Transaction<'_, DB>, ids: Vec<u32>) -> Result<(), AppError> {
    let _ = (tx, ids);
    Ok(())
}

#[idempotent(key(id), skip(double), scope = "new-name", was("old-name"))]
async fn renamed<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await
}

/// Delivers once, and once more.
async fn twice<DB: Engine, R: Recorder>(pool: &Pool<DB>, id: &str, double: &Double) {
    for expected in [Outcome::Processed(()), Outcome::Duplicate] {
        let outcome = transact!(pool, tx => R::record(tx, id, double)).await;
        assert_eq!(outcome.unwrap(), expected, "{id}");
    }
}

/// Everything that is done with the table.
async fn everything<DB: Engine>(db: &Fresh<DB>, pool: &Pool<DB>, round: u32) {
    let (id, double) = (&*round.to_string(), Double::new());
    // A failing handler's undo, too.
    let outcome =
        transact!(pool, tx => Verify::deliver(tx, id, async |_| Err(AppError::Refused))).await;
    assert!(matches!(outcome, Err(AppError::Refused)), "{outcome:?}");
    twice::<DB, Verify>(pool, id, &double).await;
    twice::<DB, Savepoint>(pool, id, &double).await;
    // With a result, a fingerprint and an expiry.
    twice::<DB, Replayed>(pool, id, &double).await;
    twice::<DB, ReplayedUnderSavepoint>(pool, id, &double).await;
    for expected in [Outcome::Processed(()), Outcome::Duplicate] {
        let outcome = transact!(pool, tx => renamed(tx, id, &double)).await;
        assert_eq!(outcome.unwrap(), expected);
    }
    assert_eq!(double.runs(), 5);
    for ids in [vec![round * 10], vec![round * 10, round * 10 + 1]] {
        let batch = transact!(pool, tx => all(tx, ids.clone())).await.unwrap();
        assert_eq!(batch.processed(), 1, "{round}");
    }
    assert!(lookup(pool, Verify::SCOPE, id).await.unwrap().is_some());
    let forgotten = idempotent_runtime::forget(pool, Verify::SCOPE, id).await;
    assert!(forgotten.unwrap());
    // An hour later
    db.run("UPDATE processed_messages SET expires_at = processed_at WHERE expires_at IS NOT NULL")
        .await;
    let pruned = pruner(pool)
        .older_than(Savepoint::SCOPE, Duration::from_micros(1))
        .run();
    assert_eq!(pruned.await.unwrap().rows, 3);
}

/// The plans that a connection has prepared still fit, of a service that knows
/// nothing of the new columns.
async fn columns_added_under_a_warm_connection_go_unnoticed<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let mut conn = pool.acquire().await.unwrap();
    // Seen by this connection alone.
    DB::run(&mut conn, "CREATE TEMPORARY TABLE warm (id int)")
        .await
        .unwrap();
    drop(conn);
    // Postgres keeps a plan after five uses.
    for round in 0..7 {
        everything(db, &pool, round).await;
    }
    for (round, column) in [(7, "tenant int"), (8, "note text NOT NULL DEFAULT ''")] {
        db.run(&format!(
            "ALTER TABLE processed_messages ADD COLUMN {column}"
        ))
        .await;
        everything(db, &pool, round).await;
    }
    let mut conn = pool.acquire().await.unwrap();
    let warm = DB::number(&mut conn, "SELECT count(*) FROM warm").await;
    assert_eq!(warm.expect("it is the same connection"), 0);
}

#[idempotent(key(id), scope = "qualified", table = "idempotent_test_inbox.seen")]
async fn on_servers<DB: Engine>(tx: &mut Transaction<'_, DB>, id: i64) -> Result<(), AppError> {
    let _ = tx;
    Ok(())
}

#[idempotent(key(id), scope = "qualified", table = "temp.seen")]
async fn on_sqlite<DB: Engine>(tx: &mut Transaction<'_, DB>, id: i64) -> Result<(), AppError> {
    let _ = tx;
    Ok(())
}

async fn a_table_of_another_schema<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    match DB::KIND {
        // SQLite: `temp`, which each connection has.
        Kind::Sqlite => {
            Table::named("temp.seen")
                .unwrap()
                .migrate(&pool)
                .await
                .unwrap();
            assert_eq!(
                transact!(&pool, tx => on_sqlite(tx, 1)).await.unwrap(),
                Outcome::Processed(())
            );
            assert_eq!(
                transact!(&pool, tx => on_sqlite(tx, 1)).await.unwrap(),
                Outcome::Duplicate
            );
        }
        Kind::MariaDb => {
            // There a schema is a database, which a migration does not make.
            db.run("CREATE DATABASE IF NOT EXISTS idempotent_test_inbox")
                .await;
            let table = Table::named("idempotent_test_inbox.seen").unwrap();
            table.migrate(&pool).await.unwrap();
            let first = transact!(&pool, tx => on_servers(tx, 1)).await.unwrap();
            let second = transact!(&pool, tx => on_servers(tx, 1)).await.unwrap();
            db.run("DROP DATABASE idempotent_test_inbox").await;
            assert_eq!(
                (first, second),
                (Outcome::Processed(()), Outcome::Duplicate)
            );
        }
        Kind::Postgres => {
            let table = Table::named("idempotent_test_inbox.seen").unwrap();
            table.migrate(&pool).await.unwrap();
            table.migrate(&pool).await.unwrap();
            assert_eq!(
                transact!(&pool, tx => on_servers(tx, 1)).await.unwrap(),
                Outcome::Processed(())
            );
            assert_eq!(
                transact!(&pool, tx => on_servers(tx, 1)).await.unwrap(),
                Outcome::Duplicate
            );
            assert_eq!(db.rows("idempotent_test_inbox.seen").await, 1);
        }
    }
}
