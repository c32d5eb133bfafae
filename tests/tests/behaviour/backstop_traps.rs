//! Unique indexes that look like the right one: each is tried by what it does to a
//! second channel and to a duplicate, beside what is said of it.

use idempotent_runtime::verify_backstop;
use idempotent_tests::{Engine, Fresh, Kind};
use sqlx::Pool;

on_every_database!(
    what_refuses_a_second_channel_is_told,
    what_lets_a_duplicate_through_is_told,
    what_does_neither_is_accepted,
);
mod columns {
    use super::a_way_out_loses_nothing_of_a_column;

    on_mariadb!(a_way_out_loses_nothing_of_a_column);
}

/// The statements that make the table `n`, and words of what is said of it.
type Trap = (&'static str, &'static str);

const POSTGRES_COARSE: &[Trap] = &[
    // A generated column is its expression.
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, \
         once text GENERATED ALWAYS AS (event_id) STORED UNIQUE, UNIQUE (event_id, channel))",
        "unique constraint `n_once_key` of table `n` is coarser than the key (event_id, channel): \
         it would refuse a row that differs in `channel` only; run ALTER TABLE \"n\" DROP CONSTRAINT \"n_once_key\"",
    ),
    // What an index includes, it does not mention.
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, account int NOT NULL DEFAULT 1, \
         UNIQUE (event_id, channel)); CREATE UNIQUE INDEX u ON n (event_id) INCLUDE (channel) WHERE account > 0",
        "would refuse a row that differs in `channel` only",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, text text NOT NULL DEFAULT 'x', \
         UNIQUE (event_id, channel)); CREATE UNIQUE INDEX u ON n ((event_id::varchar::text))",
        "would refuse a row that differs in `channel` only",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE channel IS NOT NULL",
        "unique index `u` of table `n` may be coarser than the key (event_id, channel): its WHERE can hold for \
         different values of `channel`; run DROP INDEX \"u\"",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel varchar(9) NOT NULL, UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE channel IN ('EMAIL', 'PUSH')",
        "may be coarser",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE channel = 'EMAIL' OR channel = 'PUSH'",
        "may be coarser",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE lower(channel) <> 'sms'",
        "may be coarser",
    ),
    // The same columns, with other letters equal, of some rows.
    (
        "CREATE COLLATION IF NOT EXISTS loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false); \
         CREATE TABLE n (event_id text NOT NULL, channel text COLLATE \"C\" NOT NULL, account int NOT NULL DEFAULT 1, \
         UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id, channel COLLATE loose) WHERE account > 0; \
         INSERT INTO n (event_id, channel) VALUES ('7', 'push')",
        "different values are equal to it in `channel`, by collation `loose`",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel), \
         CONSTRAINT x EXCLUDE USING btree (event_id WITH =))",
        "exclusion constraint `x` of table `n` is coarser than the key (event_id, channel): \
         it would refuse a row that differs in `channel` only; run ALTER TABLE \"n\" DROP CONSTRAINT \"x\"",
    ),
    (
        "CREATE EXTENSION IF NOT EXISTS btree_gist; \
         CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel), \
         CONSTRAINT x EXCLUDE USING gist (event_id WITH =, channel WITH <>))",
        "exclusion constraint `x` of table `n` may be coarser than the key (event_id, channel): it has other \
         operators than `=`, for which different keys can be equal",
    ),
];

const MARIADB_COARSE: &[Trap] = &[
    (
        "CREATE TABLE n (event_id varchar(40) COLLATE utf8mb4_bin NOT NULL, channel varchar(20) COLLATE utf8mb4_bin NOT NULL, \
         once varchar(40) COLLATE utf8mb4_bin AS (event_id) STORED UNIQUE, UNIQUE (event_id, channel))",
        "would refuse a row that differs in `channel` only; run ALTER TABLE `n` DROP INDEX `once`",
    ),
    (
        "CREATE TABLE n (event_id varchar(40) COLLATE utf8mb4_bin NOT NULL, channel varchar(20) COLLATE utf8mb4_bin NOT NULL, \
         small varchar(40) AS (lower(event_id)) VIRTUAL, twice varchar(80) AS (concat(small, 'it\\'s `channel`')) VIRTUAL, \
         UNIQUE u (twice), UNIQUE (event_id, channel))",
        "would refuse a row that differs in `channel` only",
    ),
    (
        "CREATE TABLE n (event_id varchar(40) COLLATE utf8mb4_bin NOT NULL, channel varchar(20) COLLATE utf8mb4_bin NOT NULL, \
         start varchar(1) AS (left(channel, 1)) VIRTUAL, UNIQUE u (event_id, start), UNIQUE (event_id, channel)); \
         INSERT INTO n (event_id, channel) VALUES ('7', 'PAPER')",
        "unique index `u` of table `n` may be coarser than the key (event_id, channel): it is on an expression",
    ),
];

const SQLITE_COARSE: &[Trap] = &[
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, \
         once text GENERATED ALWAYS AS (event_id) STORED UNIQUE, UNIQUE (event_id, channel))",
        "would refuse a row that differs in `channel` only",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, small text AS (lower(event_id)), \
         UNIQUE (event_id, channel)); CREATE UNIQUE INDEX u ON n (small || 'channel')",
        "would refuse a row that differs in `channel` only",
    ),
    // Whole names only.
    (
        "CREATE TABLE n (id integer PRIMARY KEY, event_id text NOT NULL, channel text NOT NULL, \
         UNIQUE (event_id, channel)); CREATE UNIQUE INDEX u ON n (lower(event_id))",
        "would refuse a row that differs in `channel` only",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, channel_state int NOT NULL DEFAULT 1, \
         UNIQUE (event_id, channel)); CREATE UNIQUE INDEX u ON n (event_id) WHERE channel_state = 1",
        "would refuse a row that differs in `channel` only",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, note text NOT NULL DEFAULT 'x', \
         UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE note <> 'its ''channel' /* channel */ -- channel\n",
        "would refuse a row that differs in `channel` only",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE [channel] IS NOT NULL",
        "unique index `u` of table `n` may be coarser than the key (event_id, channel): its WHERE can hold for \
         different values of `channel`; run DROP INDEX \"u\"",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE `channel` IN ('EMAIL', 'PUSH')",
        "may be coarser",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text COLLATE NOCASE NOT NULL); \
         CREATE UNIQUE INDEX o ON n (event_id, channel COLLATE BINARY); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE channel = 'push'; \
         INSERT INTO n VALUES ('7', 'push')",
        "may be coarser",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id) ON CONFLICT FAIL, \
         UNIQUE (event_id, channel))",
        "would refuse a row that differs in `channel` only",
    ),
];

const POSTGRES_FINE: &[Trap] = &[
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel)); \
         CREATE TABLE old () INHERITS (n); INSERT INTO old VALUES ('7', 'EMAIL')",
        "`public.old` inherits from table `n`: no unique index of `n` covers its rows, and a duplicate there would \
         get through; run ALTER TABLE public.old NO INHERIT \"n\"",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, made date NOT NULL DEFAULT '2025-01-01', \
         PRIMARY KEY (event_id, channel, made)) PARTITION BY RANGE (made); \
         CREATE TABLE n_0 PARTITION OF n FOR VALUES FROM ('2020-01-01') TO ('2030-01-01'); \
         INSERT INTO n VALUES ('7', 'EMAIL', '2024-01-01')",
        "a duplicate with another `made` would get through; no unique constraint can be on the key while `n` is \
         partitioned by `made`: partition it by columns of the key",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, made date NOT NULL DEFAULT '2025-01-01') \
         PARTITION BY HASH (event_id); \
         CREATE TABLE n_0 PARTITION OF n FOR VALUES WITH (modulus 1, remainder 0) PARTITION BY RANGE ((made - 1)); \
         CREATE TABLE n_1 PARTITION OF n_0 FOR VALUES FROM (minvalue) TO (maxvalue)",
        "no unique constraint can be on the key while `n` is partitioned by `RANGE (((made - 1)))`",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text, UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE channel IS NULL AND event_id > '8'",
        "`channel` may be NULL",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, \
         CONSTRAINT x EXCLUDE USING btree (event_id WITH =, channel WITH =) WHERE (event_id > '8'))",
        "exclusion constraint `x` of table `n` is partial",
    ),
];

const MARIADB_FINE: &[Trap] = &[
    (
        "CREATE TABLE n (event_id varchar(40) COLLATE utf8mb4_bin NOT NULL, channel varchar(20) COLLATE utf8mb4_bin NOT NULL, \
         made date NOT NULL DEFAULT '2025-01-01', PRIMARY KEY (event_id, channel, made)) \
         PARTITION BY RANGE (to_days(made)) (PARTITION p VALUES LESS THAN maxvalue); \
         INSERT INTO n VALUES ('7', 'EMAIL', '2024-01-01')",
        "a duplicate with another `made` would get through; no unique constraint can be on the key while `n` is \
         partitioned by `made`: partition it by columns of the key",
    ),
    (
        "CREATE TABLE n (event_id varchar(40) COLLATE utf8mb4_bin NOT NULL, channel varchar(20) COLLATE utf8mb4_bin NOT NULL, \
         made date NOT NULL DEFAULT '2025-01-01', PRIMARY KEY (event_id, channel, made)) PARTITION BY KEY () PARTITIONS 2; \
         INSERT INTO n VALUES ('7', 'EMAIL', '2024-01-01')",
        "while `n` is partitioned by `made`",
    ),
    (
        "CREATE TABLE n (event_id varchar(40) COLLATE utf8mb4_bin NOT NULL, code varchar(20) COLLATE utf8mb4_bin, \
         channel varchar(20) COLLATE utf8mb4_bin AS (nullif('EMAIL', 'EMAIL')) STORED, UNIQUE (event_id, channel))",
        "`channel` may be NULL: a duplicate would get through; \
         make `channel` an ordinary column that is NOT NULL",
    ),
];

const SQLITE_FINE: &[Trap] = &[(
    "CREATE TABLE n (event_id text NOT NULL, channel text, UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE channel IS NULL AND event_id > '8'",
    "`channel` may be NULL",
)    // Which of the two is asked first is SQLite's own business.
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel) on conflict ignore); \
         CREATE UNIQUE INDEX once ON n (channel, event_id)",
        "says ON CONFLICT IGNORE: a duplicate is passed over without an error; make the table anew without that constraint",
    )];

/// They say nothing, and the handler goes on.
const SQLITE_SILENT: &[Trap] = &[
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel) ON CONFLICT IGNORE)",
        "unique constraint `sqlite_autoindex_n_1` of table `n` says ON CONFLICT IGNORE: a duplicate is passed over \
         without an error; make the table anew without that constraint, then run CREATE UNIQUE INDEX",
    ),
    (
        "CREATE TABLE n (\"event_id\" text NOT NULL, channel text NOT NULL, other int UNIQUE ON CONFLICT FAIL, \
         PRIMARY KEY (event_id ASC, [channel]) ON CONFLICT REPLACE)",
        "the primary key of table `n` says ON CONFLICT REPLACE: a duplicate takes the place of the first; \
         make the table anew with another primary key",
    ),
];

const POSTGRES_RIGHT: &[&str] = &[
    // One channel's own rule.
    "CREATE TABLE n (event_id text NOT NULL, channel varchar(9) NOT NULL, UNIQUE (event_id, channel)); \
     CREATE UNIQUE INDEX u ON n (event_id) WHERE channel = 'SMS'; \
     CREATE UNIQUE INDEX v ON n (event_id) WHERE 'SMS' = channel AND event_id > '8' AND (event_id < '9' OR channel > 'A')",
    "CREATE TABLE n (event_id text NOT NULL, channel text, UNIQUE (event_id, channel)); \
     CREATE UNIQUE INDEX u ON n (event_id) WHERE channel IS NULL",
    "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, \
     EXCLUDE USING btree (event_id WITH =, channel WITH =))",
    "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, span int4range NOT NULL DEFAULT 'empty', \
     UNIQUE (event_id, channel), EXCLUDE USING gist (span WITH &&))",
    "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, made date NOT NULL DEFAULT '2025-01-01', \
     UNIQUE (event_id, channel)) PARTITION BY HASH (event_id, channel); \
     CREATE TABLE n_0 PARTITION OF n FOR VALUES WITH (modulus 1, remainder 0)",
];

const MARIADB_RIGHT: &[&str] = &[
    "CREATE TABLE n (event_id varchar(40) COLLATE utf8mb4_bin NOT NULL, channel varchar(20) COLLATE utf8mb4_bin NOT NULL, \
     note varchar(20) NOT NULL DEFAULT 'x', small varchar(60) AS (concat(event_id, note, channel)) VIRTUAL, \
     UNIQUE (event_id, small), UNIQUE (event_id, channel))",
    "CREATE TABLE n (event_id varchar(40) COLLATE utf8mb4_bin NOT NULL, channel varchar(20) COLLATE utf8mb4_bin NOT NULL, \
     PRIMARY KEY (event_id, channel)) PARTITION BY KEY () PARTITIONS 2",
];

const SQLITE_RIGHT: &[&str] = &[
    "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel)); \
     CREATE UNIQUE INDEX u ON n (event_id) WHERE channel == 'SMS'; \
     CREATE UNIQUE INDEX v ON n (event_id) WHERE event_id > '8' AND (\"channel\") = 'SMS'",
    "CREATE TABLE n (event_id text NOT NULL, channel text, UNIQUE (event_id, channel)); \
     CREATE UNIQUE INDEX u ON n (event_id) WHERE channel IS NULL",
    "CREATE TABLE n (event_id text COLLATE binary NOT NULL, channel text NOT NULL); \
     CREATE UNIQUE INDEX u ON n (event_id, channel COLLATE Binary)",
    "CREATE TABLE n (event_id ANY NOT NULL, channel TEXT NOT NULL, UNIQUE (event_id, channel)) STRICT",
    "CREATE TABLE n (event_id NOT NULL, channel BLOB NOT NULL, other int UNIQUE ON CONFLICT IGNORE, \
     UNIQUE (event_id, channel) ON CONFLICT ROLLBACK)",
];

/// What it is to be told from, and what it does with a row.
struct Table<'d, DB: Engine> {
    db: &'d Fresh<DB>,
    pool: Pool<DB>,
}

impl<DB: Engine> Table<'_, DB> {
    async fn make(&self, make: &str) {
        for name in ["old", "n"] {
            self.db.run(&format!("DROP TABLE IF EXISTS {name}")).await;
        }
        self.db.run(make).await;
    }

    async fn said(&self) -> Result<(), String> {
        let said = verify_backstop(&self.pool, "n", ["event_id", "channel"]).await;
        said.map_err(|error| error.to_string())
    }

    async fn refused(&self, make: &str, words: &str) {
        self.make(make).await;
        let error = self.said().await.expect_err(make);
        assert!(error.contains(words), "{make}: {error}");
        assert!(!error.contains('\n') && !error.ends_with('.'), "{error}");
    }

    /// Whether a row of event 7 gets in.
    async fn takes(&self, channel: &str) -> bool {
        let mut conn = self.pool.acquire().await.unwrap();
        let insert = format!("INSERT INTO n (event_id, channel) VALUES ('7', '{channel}')");
        DB::run(&mut conn, &insert).await.is_ok()
    }
}

async fn table<DB: Engine>(db: &Fresh<DB>) -> Table<'_, DB> {
    let pool = db.pool(1).await;
    Table { db, pool }
}

async fn what_refuses_a_second_channel_is_told<DB: Engine>(db: &Fresh<DB>) {
    let table = table(db).await;
    let traps = match DB::KIND {
        Kind::Postgres => POSTGRES_COARSE,
        Kind::MariaDb => MARIADB_COARSE,
        Kind::Sqlite => SQLITE_COARSE,
    };
    for (make, words) in traps {
        table.refused(make, words).await;
        // It is so, unless a row is there already.
        table.takes("EMAIL").await;
        assert!(!table.takes("PUSH").await, "{make}");
    }
}

async fn what_lets_a_duplicate_through_is_told<DB: Engine>(db: &Fresh<DB>) {
    let table = table(db).await;
    let (finer, silent): (_, &[Trap]) = match DB::KIND {
        Kind::Postgres => (POSTGRES_FINE, &[]),
        Kind::MariaDb => (MARIADB_FINE, &[]),
        Kind::Sqlite => (SQLITE_FINE, SQLITE_SILENT),
    };
    for (make, words) in finer {
        table.refused(make, words).await;
    }
    for (make, words) in silent {
        table.refused(make, words).await;
        for _ in 0..2 {
            assert!(table.takes("EMAIL").await, "{make}");
        }
    }
    if DB::KIND == Kind::Sqlite {
        for declared in ["STRING", "REAL", "decimal(10, 2)"] {
            let make = format!(
                "CREATE TABLE n (event_id {declared} NOT NULL, channel TEXT NOT NULL, UNIQUE (event_id, channel))"
            );
            let words = "different values are equal to it in `event_id`, by affinity ";
            table.refused(&make, words).await;
            table
                .refused(&make, "; make the table anew with `event_id` TEXT")
                .await;
            table.db.run("INSERT INTO n VALUES ('007', 'EMAIL')").await;
            assert!(!table.takes("EMAIL").await, "{make}");
        }
    }
}

async fn what_does_neither_is_accepted<DB: Engine>(db: &Fresh<DB>) {
    let table = table(db).await;
    let right = match DB::KIND {
        Kind::Postgres => POSTGRES_RIGHT,
        Kind::MariaDb => MARIADB_RIGHT,
        Kind::Sqlite => SQLITE_RIGHT,
    };
    for make in right {
        table.make(make).await;
        if let Err(error) = table.said().await {
            panic!("{make}: {error}");
        }
        assert!(
            table.takes("EMAIL").await && table.takes("PUSH").await,
            "{make}"
        );
        assert!(!table.takes("PUSH").await, "{make}");
    }
}

async fn a_way_out_loses_nothing_of_a_column<DB: Engine>(db: &Fresh<DB>) {
    let table = table(db).await;
    let text = "varchar(20) CHARACTER SET utf8mb4 COLLATE";
    // What can be said in full is a statement.
    for (column, way_out, becomes) in [
        (
            "varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT 'it''s'",
            "run ALTER TABLE `n` MODIFY `channel` varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL DEFAULT 'it''s'",
            "varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL DEFAULT 'it''s'",
        ),
        (
            "varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_nopad_ci NOT NULL",
            "run ALTER TABLE `n` MODIFY `channel` varchar(20) COLLATE utf8mb4_nopad_bin NOT NULL",
            "varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL",
        ),
        (
            "timestamp NULL DEFAULT current_timestamp()",
            "run ALTER TABLE `n` MODIFY `channel` timestamp NOT NULL DEFAULT current_timestamp()",
            "timestamp NOT NULL DEFAULT current_timestamp()",
        ),
    ] {
        let make = format!(
            "CREATE TABLE n (event_id int NOT NULL, channel {column}, UNIQUE (event_id, channel))"
        );
        table.refused(&make, way_out).await;
        let error = table.said().await.unwrap_err();
        let (_, run) = error.split_once("; run ").unwrap();
        table.db.run(run).await;
        table.said().await.unwrap();
        let mut conn = table.pool.acquire().await.unwrap();
        let definition = "SELECT concat_ws(' ', column_type, concat('CHARACTER SET ', character_set_name), \
             concat('COLLATE ', collation_name), if(is_nullable = 'NO', 'NOT NULL', NULL), \
             concat('DEFAULT ', column_default)) FROM information_schema.columns \
             WHERE table_schema = database() AND table_name = 'n' AND column_name = 'channel'";
        let found = DB::texts(&mut conn, definition).await.unwrap();
        assert_eq!(found, [becomes]);
    }
    // What cannot, is not.
    for column in [
        format!("{text} utf8mb4_bin CHECK (channel <> '')"),
        format!("{text} utf8mb4_bin COMMENT 'by which'"),
        format!("{text} utf8mb4_bin INVISIBLE"),
        "timestamp NULL ON UPDATE current_timestamp()".to_owned(),
        "varchar(20) COMPRESSED CHARACTER SET utf8mb4 COLLATE utf8mb4_bin".to_owned(),
    ] {
        let unique = if column.contains("COMPRESSED") {
            ""
        } else {
            ", UNIQUE (event_id, channel)"
        };
        let make = format!("CREATE TABLE n (event_id int NOT NULL, channel {column}{unique})");
        table.make(&make).await;
        let error = table.said().await.expect_err(&make);
        assert!(!error.contains("MODIFY"), "{make}: {error}");
        if !unique.is_empty() {
            let words = "; make `channel` NOT NULL, with all else that SHOW CREATE TABLE has of it";
            assert!(error.ends_with(words), "{make}: {error}");
        }
    }
    let folded = format!(
        "CREATE TABLE n (event_id int NOT NULL, channel {text} utf8mb4_general_ci NOT NULL COMMENT 'by which', \
         UNIQUE (event_id, channel))"
    );
    let words =
        "; give `channel` COLLATE utf8mb4_bin, with all else that SHOW CREATE TABLE has of it";
    table.refused(&folded, words).await;
}
