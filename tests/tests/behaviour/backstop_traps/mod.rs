//! Unique indexes that look like the right one: each is tried by what it does to a
//! second channel and to a duplicate, beside what is said of it.

mod cases;

use idempotent_runtime::verify_backstop;
use idempotent_tests::{Engine, Fresh, Kind};
use sqlx::Pool;
use sqlx::pool::PoolOptions;

use cases::{
    MARIADB_COARSE, MARIADB_FINE, MARIADB_RIGHT, POSTGRES_COARSE, POSTGRES_FINE, POSTGRES_RIGHT,
    SQLITE_COARSE, SQLITE_FINE, SQLITE_RIGHT, SQLITE_SILENT, Trap,
};

on_every_database!(
    what_refuses_a_second_channel_is_told,
    what_lets_a_duplicate_through_is_told,
    what_does_neither_is_accepted,
);
mod columns {
    use super::{a_way_out_loses_nothing_of_a_column, rights_to_columns_are_enough};

    on_mariadb!(
        a_way_out_loses_nothing_of_a_column,
        rights_to_columns_are_enough,
    );
}

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

async fn rights_to_columns_are_enough<DB: Engine>(db: &Fresh<DB>) {
    let text = "varchar(20) COLLATE utf8mb4_bin";
    let make = |null: &str| {
        format!(
            "CREATE TABLE n (event_id int NOT NULL, channel {text} {null}, UNIQUE (event_id, channel))"
        )
    };
    db.run(&make("NOT NULL")).await;
    // That is none to any table.
    let options = DB::create_role(&db.options, "CREATE ROUTINE")
        .await
        .unwrap();
    let name = db.texts("SELECT database()").await.remove(0);
    let grant = ["'%'", "localhost", "'127.0.0.1'"]
        .map(|host| format!("GRANT INSERT (event_id, channel) ON n TO {name}@{host}"))
        .join("; ");
    db.run(&grant).await;
    let pool = PoolOptions::new().max_connections(1);
    let pool: Pool<DB> = pool.connect_with(options).await.unwrap();
    let key = ["event_id", "channel"];
    verify_backstop(&pool, "n", key).await.unwrap();
    db.run(&format!("ALTER TABLE n MODIFY channel {text}"))
        .await;
    let error = verify_backstop(&pool, "n", key).await.unwrap_err();
    let words = "make `channel` NOT NULL, with all else";
    assert!(error.to_string().contains(words), "{error}");
}
