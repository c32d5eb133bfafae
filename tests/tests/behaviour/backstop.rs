//! The check of a business table's own unique constraint: which ones have the
//! grain of the key, and what is said of the others.

use idempotent_runtime::{Disposition, Error, disposition, verify_backstop};
use idempotent_tests::{Engine, Fresh, Kind};
use sqlx::Pool;
use sqlx::pool::PoolOptions;

on_every_database!(
    exact_constraints_are_accepted,
    a_missing_one_is_told_with_the_way_out,
    a_coarser_one_is_told,
    a_coarser_one_beside_the_exact_one_is_told,
    a_finer_one_is_told,
    a_finer_one_beside_the_exact_one_is_accepted,
    a_column_that_may_be_null_is_told,
    letters_that_are_equal_are_told,
    what_databases_have_of_their_own_is_told,
    what_guards_other_things_is_passed_over,
    the_ways_out_lead_out,
    tables_and_columns_that_are_not_there_are_told,
    names_are_quoted,
    a_table_of_another_schema,
    it_leaves_everything_as_it_was,
    an_error_of_it_is_no_message_s_fault,
);
mod with_rights {
    use super::few_rights_are_enough;

    on_servers!(few_rights_are_enough);
}

const KEY: [&str; 2] = ["event_id", "channel"];

/// A table without any unique key, and what else is to be made. Columns that are
/// text compare bytes.
fn table<DB: Engine>(rest: &str) -> String {
    let text = text::<DB>();
    format!(
        "CREATE TABLE notifications (event_id {text} NOT NULL, channel {text} NOT NULL, \
         account int NOT NULL, note {text}{rest}"
    )
}

const fn text<DB: Engine>() -> &'static str {
    match DB::KIND {
        Kind::Postgres | Kind::Sqlite => "text",
        Kind::MariaDb => "varchar(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    }
}

async fn verify<DB: Engine>(pool: &Pool<DB>) -> Result<(), Error> {
    verify_backstop(pool, "notifications", KEY).await
}

/// Makes the table anew, and returns what is said of it.
async fn said<DB: Engine>(db: &Fresh<DB>, pool: &Pool<DB>, make: &str) -> Result<(), String> {
    db.run("DROP TABLE IF EXISTS notifications").await;
    db.run(make).await;
    verify(pool).await.map_err(|error| error.to_string())
}

async fn refused<DB: Engine>(db: &Fresh<DB>, pool: &Pool<DB>, make: &str, words: &[&str]) {
    let Err(error) = said(db, pool, make).await else {
        panic!("accepted: {make}");
    };
    for word in words {
        assert!(error.contains(word), "{make}: {error}: {word}");
    }
    assert!(error.starts_with(char::is_lowercase), "{error}");
    assert!(!error.ends_with('.') && !error.contains('\n'), "{error}");
}

async fn exact_constraints_are_accepted<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    let mut exact = vec![
        table::<DB>(", UNIQUE (event_id, channel))"),
        table::<DB>(", CONSTRAINT once UNIQUE (channel, event_id))"),
        table::<DB>(", PRIMARY KEY (event_id, channel))"),
        table::<DB>("); CREATE UNIQUE INDEX once ON notifications (event_id, channel)"),
        table::<DB>("); CREATE UNIQUE INDEX once ON notifications (channel, event_id)"),
        table::<DB>(", UNIQUE (event_id, channel), UNIQUE (channel, event_id))"),
    ];
    let own: &[&str] = match DB::KIND {
        Kind::Postgres => &[
            "); CREATE UNIQUE INDEX once ON notifications (event_id, channel) INCLUDE (account)",
            "); CREATE UNIQUE INDEX once ON notifications (event_id DESC, channel)",
            ", UNIQUE (event_id, channel) DEFERRABLE)",
            "); ALTER TABLE notifications DROP COLUMN note, ADD UNIQUE (event_id, channel)",
        ],
        Kind::MariaDb => &[
            ") ENGINE = MyISAM; ALTER TABLE notifications ADD UNIQUE (event_id, channel)",
            // Of all its characters.
            ", UNIQUE (event_id(100), channel))",
            // An enumeration compares numbers.
            ", UNIQUE (event_id, channel)); ALTER TABLE notifications \
             MODIFY channel enum('EMAIL', 'PUSH') COLLATE utf8mb4_general_ci NOT NULL",
        ],
        Kind::Sqlite => &[
            ", UNIQUE (event_id, channel) ON CONFLICT ABORT)",
            ", PRIMARY KEY (event_id, channel)) STRICT, WITHOUT ROWID",
        ],
    };
    exact.extend(own.iter().map(|rest| table::<DB>(rest)));
    if DB::KIND == Kind::Sqlite {
        // A primary key is NOT NULL there without saying so.
        exact.push(
            "CREATE TABLE notifications (event_id text, channel text, PRIMARY KEY (channel, event_id)) \
             WITHOUT ROWID"
                .to_owned(),
        );
    }
    if DB::KIND == Kind::Postgres {
        exact.push(
            table::<DB>(
                ", UNIQUE (event_id, channel)) PARTITION BY HASH (event_id); \
                 CREATE TABLE notifications_0 PARTITION OF notifications FOR VALUES WITH (modulus 1, remainder 0)",
            ),
        );
        if db
            .number("SELECT current_setting('server_version_num')::bigint")
            .await
            >= 150_000
        {
            exact.push(
                "CREATE TABLE notifications (event_id text, channel text, \
                 UNIQUE NULLS NOT DISTINCT (event_id, channel))"
                    .to_owned(),
            );
        }
    }
    for make in exact {
        said(db, &pool, &make)
            .await
            .unwrap_or_else(|error| panic!("{make}: {error}"));
    }
    verify_backstop(
        &pool,
        "notifications",
        vec!["channel".to_owned(), "event_id".to_owned()],
    )
    .await
    .unwrap();
}

async fn a_missing_one_is_told_with_the_way_out<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    let missing = "table `notifications` has no unique constraint on the key (event_id, channel): \
         a duplicate would get through; run ";
    for rest in [
        ")",
        "); CREATE INDEX slow ON notifications (event_id, channel)",
        ", id int PRIMARY KEY)",
        ", UNIQUE (event_id, account))",
    ] {
        refused(db, &pool, &table::<DB>(rest), &[missing]).await;
    }
    let error = verify(&pool).await.unwrap_err().to_string();
    let run = match DB::KIND {
        Kind::Postgres => "ALTER TABLE \"notifications\" ADD UNIQUE (\"event_id\", \"channel\")",
        Kind::MariaDb => "ALTER TABLE `notifications` ADD UNIQUE (`event_id`, `channel`)",
        Kind::Sqlite => {
            "CREATE UNIQUE INDEX \"notifications_backstop\" ON \"notifications\" (\"event_id\", \"channel\")"
        }
    };
    assert_eq!(error, format!("{missing}{run}"));
}

async fn a_coarser_one_is_told<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    let make = table::<DB>("); CREATE UNIQUE INDEX once ON notifications (event_id)");
    let error = said(db, &pool, &make).await.unwrap_err();
    let run = match DB::KIND {
        Kind::Postgres => {
            "run DROP INDEX \"once\", then run ALTER TABLE \"notifications\" ADD UNIQUE (\"event_id\", \"channel\")"
        }
        Kind::MariaDb => {
            "run ALTER TABLE `notifications` DROP INDEX `once`, \
             then run ALTER TABLE `notifications` ADD UNIQUE (`event_id`, `channel`)"
        }
        Kind::Sqlite => {
            "run DROP INDEX \"once\", then run CREATE UNIQUE INDEX \"notifications_backstop\" \
             ON \"notifications\" (\"event_id\", \"channel\")"
        }
    };
    assert_eq!(
        error,
        format!(
            "unique index `once` of table `notifications` is coarser than the key (event_id, channel): \
             it would refuse a row that differs in `channel` only; {run}"
        )
    );
    let coarser = [
        (", UNIQUE (channel))", "in `event_id` only"),
        (
            ", PRIMARY KEY (event_id))",
            "the primary key of table `notifications` is coarser",
        ),
        (
            ", UNIQUE (event_id), UNIQUE (channel))",
            "in `event_id` only",
        ),
        (
            ", UNIQUE (event_id), UNIQUE (event_id, channel, account))",
            "is coarser",
        ),
    ];
    for (rest, word) in coarser {
        refused(
            db,
            &pool,
            &table::<DB>(rest),
            &["is coarser than the key", word],
        )
        .await;
    }
    if DB::KIND == Kind::Sqlite {
        // The number of the row, which has no index.
        let make =
            "CREATE TABLE notifications (event_id INTEGER PRIMARY KEY, channel text NOT NULL)";
        refused(
            db,
            &pool,
            make,
            &["the primary key of table `notifications` is coarser"],
        )
        .await;
    }
}

async fn a_coarser_one_beside_the_exact_one_is_told<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    for rest in [
        ", UNIQUE (event_id, channel), UNIQUE (event_id))",
        ", PRIMARY KEY (event_id), UNIQUE (event_id, channel))",
        ", UNIQUE (event_id, channel)); CREATE UNIQUE INDEX u ON notifications (channel)",
    ] {
        let make = table::<DB>(rest);
        refused(
            db,
            &pool,
            &make,
            &["is coarser than the key (event_id, channel)"],
        )
        .await;
        let error = verify(&pool).await.unwrap_err().to_string();
        assert!(
            !error.contains("ADD UNIQUE") && !error.contains("CREATE"),
            "{error}"
        );
    }
}

async fn a_finer_one_is_told<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    let words = [
        "is finer than the key (event_id, channel): a duplicate with another `account` would get through; run ",
        "(event_id, channel)",
    ];
    for rest in [
        ", UNIQUE (event_id, channel, account))",
        ", PRIMARY KEY (account, channel, event_id))",
    ] {
        refused(db, &pool, &table::<DB>(rest), &words).await;
    }
}

async fn a_finer_one_beside_the_exact_one_is_accepted<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    let make = table::<DB>(", UNIQUE (event_id, channel, account), UNIQUE (event_id, channel))");
    said(db, &pool, &make).await.unwrap();
}

async fn a_column_that_may_be_null_is_told<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    let text = text::<DB>();
    let make = format!(
        "CREATE TABLE notifications (event_id {text} NOT NULL, channel {text}, \
         CONSTRAINT once UNIQUE (event_id, channel))"
    );
    refused(
        db,
        &pool,
        &make,
        &["takes no NULL for another, and `channel` may be NULL"],
    )
    .await;
    // It is so.
    for _ in 0..2 {
        db.run("INSERT INTO notifications (event_id) VALUES ('7')")
            .await;
    }
    if DB::KIND == Kind::Sqlite {
        let make = "CREATE TABLE notifications (event_id text, channel text, PRIMARY KEY (event_id, channel))";
        refused(db, &pool, make, &["`event_id` and `channel` may be NULL"]).await;
    }
}

async fn letters_that_are_equal_are_told<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    let folding = match DB::KIND {
        Kind::Postgres => {
            db.run(
                "CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
            )
            .await;
            "text COLLATE folded"
        }
        Kind::MariaDb => "varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        Kind::Sqlite => "text COLLATE NOCASE",
    };
    let make = format!(
        "CREATE TABLE notifications (event_id int NOT NULL, channel {folding} NOT NULL, UNIQUE (event_id, channel))"
    );
    let words = [
        "is coarser than the key (event_id, channel): different values are equal to it in `channel`, by collation `",
    ];
    refused(db, &pool, &make, &words).await;
    // It is so.
    db.run("INSERT INTO notifications VALUES (7, 'EMAIL')")
        .await;
    let mut conn = pool.acquire().await.unwrap();
    assert!(
        DB::run(&mut conn, "INSERT INTO notifications VALUES (7, 'email')")
            .await
            .is_err()
    );
    drop(conn);
    let column = format!(
        "CREATE TABLE notifications (event_id int NOT NULL, channel {} NOT NULL",
        text::<DB>()
    );
    let indexed = match DB::KIND {
        Kind::Postgres => {
            "); CREATE UNIQUE INDEX u ON notifications (event_id, channel COLLATE folded)"
        }
        Kind::Sqlite => {
            "); CREATE UNIQUE INDEX u ON notifications (event_id, channel COLLATE NOCASE)"
        }
        // An index has no collation of its own.
        Kind::MariaDb => return,
    };
    refused(
        db,
        &pool,
        &format!("{column}{indexed}"),
        &[words[0], "run DROP INDEX \"u\""],
    )
    .await;
    let beside = format!("{column}, UNIQUE (event_id, channel){indexed}");
    refused(db, &pool, &beside, &[words[0], "run DROP INDEX \"u\""]).await;
    // Of no matter, by an exact index.
    if DB::KIND == Kind::Sqlite {
        let exact = "CREATE TABLE notifications (event_id int NOT NULL, channel text COLLATE NOCASE NOT NULL); \
             CREATE UNIQUE INDEX u ON notifications (event_id, channel COLLATE BINARY)";
        said(db, &pool, exact).await.unwrap();
    }
}

const POSTGRES: &[(&str, &str)] = &[
    (
        "); CREATE UNIQUE INDEX u ON notifications (event_id, channel) WHERE account > 0",
        "unique index `u` of table `notifications` is partial: a duplicate among the rows that its WHERE leaves out",
    ),
    (
        "); CREATE UNIQUE INDEX u ON notifications (event_id) WHERE account > 0",
        "it would refuse a row that differs in `channel` only",
    ),
    (
        "); CREATE UNIQUE INDEX u ON notifications (event_id, lower(channel))",
        "unique index `u` of table `notifications` may be coarser than the key (event_id, channel): it is on an expression",
    ),
    (
        ", UNIQUE (event_id, channel)); CREATE UNIQUE INDEX u ON notifications (event_id, lower(channel))",
        "may be coarser",
    ),
    (
        "); CREATE UNIQUE INDEX u ON notifications (lower(event_id))",
        "it would refuse a row that differs in `channel` only",
    ),
    (
        "); CREATE UNIQUE INDEX u ON notifications ((true))",
        "it would refuse a row that differs in `event_id` or `channel` only",
    ),
    (
        ", CONSTRAINT u UNIQUE (event_id, channel) DEFERRABLE INITIALLY DEFERRED)",
        "is INITIALLY DEFERRED: it refuses a duplicate at COMMIT only",
    ),
    (
        ", CONSTRAINT u UNIQUE (event_id) DEFERRABLE INITIALLY DEFERRED, UNIQUE (event_id, channel))",
        "unique constraint `u` of table `notifications` is coarser",
    ),
    (
        "); CREATE UNIQUE INDEX u ON notifications (event_id) INCLUDE (channel)",
        "is coarser",
    ),
    // A whole that not all parts have.
    (
        ") PARTITION BY HASH (event_id); \
         CREATE TABLE notifications_0 PARTITION OF notifications FOR VALUES WITH (modulus 1, remainder 0); \
         CREATE UNIQUE INDEX u ON ONLY notifications (event_id, channel)",
        "unique index `u` of table `notifications` is not valid",
    ),
];

const MARIADB: &[(&str, &str)] = &[
    (
        ", UNIQUE u (event_id(8), channel))",
        "unique index `u` of table `notifications` is coarser than the key (event_id, channel): \
         different values are equal to it in `event_id`, by its first 8 characters; \
         run ALTER TABLE `notifications` DROP INDEX `u`, then run ALTER TABLE `notifications` ADD UNIQUE",
    ),
    (
        ", UNIQUE (event_id, channel), UNIQUE u (event_id(8), channel))",
        "in `event_id`, by its first 8 characters; run ALTER TABLE `notifications` DROP INDEX `u`",
    ),
    (", UNIQUE u (event_id(8)))", "in `channel` only"),
];

const SQLITE: &[(&str, &str)] = &[
    (
        "); CREATE UNIQUE INDEX u ON notifications (event_id, channel) WHERE account > 0",
        "unique index `u` of table `notifications` is partial: a duplicate among the rows that its WHERE leaves out",
    ),
    (
        "); CREATE UNIQUE INDEX channels ON notifications (event_id) WHERE account > 0",
        "it would refuse a row that differs in `channel` only",
    ),
    (
        "); CREATE UNIQUE INDEX u ON notifications (event_id, lower(channel))",
        "unique index `u` of table `notifications` may be coarser than the key (event_id, channel): it is on an expression",
    ),
    (
        ", UNIQUE (event_id, channel)); CREATE UNIQUE INDEX u ON notifications (event_id, lower(channel))",
        "may be coarser",
    ),
    (
        "); CREATE UNIQUE INDEX u ON notifications (lower(event_id))",
        "it would refuse a row that differs in `channel` only",
    ),
    (
        ", id INTEGER PRIMARY KEY); CREATE UNIQUE INDEX u ON notifications (event_id, channel, id)",
        "is finer than the key (event_id, channel): a duplicate with another `id` would get through",
    ),
    (
        ", UNIQUE (event_id))",
        "make the table anew without that constraint, then run CREATE UNIQUE INDEX",
    ),
];

async fn what_databases_have_of_their_own_is_told<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    let own = match DB::KIND {
        Kind::Postgres => POSTGRES,
        Kind::MariaDb => MARIADB,
        Kind::Sqlite => SQLITE,
    };
    for (rest, word) in own {
        refused(db, &pool, &table::<DB>(rest), &[word]).await;
    }
    match DB::KIND {
        Kind::Postgres => an_index_that_could_not_be_made_is_told(db, &pool).await,
        Kind::MariaDb => tables_that_differ_in_case_are_two(db, &pool).await,
        Kind::Sqlite => {}
    }
}

/// As they are on Linux.
async fn tables_that_differ_in_case_are_two<DB: Engine>(db: &Fresh<DB>, pool: &Pool<DB>) {
    let make = table::<DB>(", UNIQUE (event_id, channel))");
    let other = table::<DB>(", UNIQUE (event_id))").replace("notifications", "Notifications");
    db.run(&other).await;
    said(db, pool, &make).await.unwrap();
    let other = verify_backstop(pool, "Notifications", KEY).await;
    assert!(other.unwrap_err().to_string().contains("is coarser"));
}

async fn an_index_that_could_not_be_made_is_told<DB: Engine>(db: &Fresh<DB>, pool: &Pool<DB>) {
    db.run("DROP TABLE notifications").await;
    db.run(&table::<DB>(")")).await;
    for _ in 0..2 {
        db.run("INSERT INTO notifications VALUES ('7', 'EMAIL', 1)")
            .await;
    }
    let mut conn = pool.acquire().await.unwrap();
    let index = "CREATE UNIQUE INDEX CONCURRENTLY u ON notifications (event_id, channel)";
    assert!(DB::run(&mut conn, index).await.is_err());
    drop(conn);
    let error = verify(pool).await.unwrap_err().to_string();
    assert!(
        error.contains("unique index `u` of table `notifications` is not valid"),
        "{error}"
    );
    // One that was to be coarser refuses nothing.
    db.run("DROP INDEX u").await;
    db.run("DELETE FROM notifications; INSERT INTO notifications VALUES ('7', 'EMAIL', 1), ('7', 'PUSH', 1)")
        .await;
    let mut conn = pool.acquire().await.unwrap();
    let index = "CREATE UNIQUE INDEX CONCURRENTLY u ON notifications (event_id)";
    assert!(DB::run(&mut conn, index).await.is_err());
    drop(conn);
    db.run("ALTER TABLE notifications ADD UNIQUE (event_id, channel)")
        .await;
    verify(pool).await.unwrap();
}

async fn what_guards_other_things_is_passed_over<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    let mut others = vec![", UNIQUE (account)", ", UNIQUE (channel, account)"];
    if DB::KIND != Kind::MariaDb {
        others.extend([
            // Once for each event, of one channel.
            "); CREATE UNIQUE INDEX u ON notifications (event_id) WHERE channel = 'SMS'",
            "); CREATE UNIQUE INDEX u ON notifications (event_id, lower(note))",
        ]);
    }
    for other in others {
        let (inside, after) = match other.strip_prefix(")") {
            Some(after) => ("", after),
            None => (other, ""),
        };
        let make = table::<DB>(&format!(", UNIQUE (event_id, channel){inside}){after}"));
        said(db, &pool, &make)
            .await
            .unwrap_or_else(|error| panic!("{make}: {error}"));
    }
}

/// What is said to be run makes it right, within a few steps.
async fn the_ways_out_lead_out<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    let text = text::<DB>();
    let nullable = format!("CREATE TABLE notifications (event_id {text}, channel {text}");
    let mut wrong = vec![
        table::<DB>(")"),
        table::<DB>("); CREATE UNIQUE INDEX u ON notifications (event_id)"),
        table::<DB>(
            "); CREATE UNIQUE INDEX u ON notifications (channel); CREATE UNIQUE INDEX v ON notifications (event_id)",
        ),
        table::<DB>(", UNIQUE (event_id, channel, account))"),
    ];
    match DB::KIND {
        Kind::Postgres => {
            db.run(
                "CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
            )
            .await;
            wrong.extend([
                format!("{nullable})"),
                format!("{nullable}, UNIQUE (event_id, channel))"),
                table::<DB>(", PRIMARY KEY (event_id))"),
                table::<DB>(", UNIQUE (event_id, channel) DEFERRABLE INITIALLY DEFERRED)"),
                table::<DB>("); CREATE UNIQUE INDEX u ON notifications (event_id, channel) WHERE account > 0"),
                table::<DB>("); CREATE UNIQUE INDEX u ON notifications (event_id, lower(channel))"),
                "CREATE TABLE notifications (event_id int NOT NULL, channel varchar(20) COLLATE folded, \
                 UNIQUE (event_id, channel))"
                    .to_owned(),
            ]);
        }
        Kind::MariaDb => wrong.extend([
            format!("{nullable})"),
            format!("{nullable}, UNIQUE (event_id, channel))"),
            table::<DB>(", PRIMARY KEY (event_id))"),
            table::<DB>(", UNIQUE u (event_id(8), channel))"),
            "CREATE TABLE notifications (event_id varchar(40) DEFAULT 'it''s', channel varchar(20) DEFAULT NULL, \
             UNIQUE (event_id(10), channel))"
                .to_owned(),
        ]),
        Kind::Sqlite => wrong.extend([
            table::<DB>("); CREATE UNIQUE INDEX u ON notifications (event_id, channel) WHERE account > 0"),
            table::<DB>("); CREATE UNIQUE INDEX u ON notifications (event_id, lower(channel))"),
            "CREATE TABLE notifications (event_id int NOT NULL, channel text COLLATE NOCASE NOT NULL)".to_owned(),
        ]),
    }
    for make in wrong {
        let mut error = said(db, &pool, &make).await.expect_err(&make);
        for _ in 0..4 {
            let (_, ways_out) = error.split_once("; run ").expect(&error);
            // On one connection: SQLite's others learn late that an index is gone.
            let mut conn = pool.acquire().await.unwrap();
            for way_out in ways_out.split(", then run ") {
                let done = DB::run(&mut conn, way_out).await;
                done.unwrap_or_else(|error| panic!("{make}: {way_out}: {error}"));
            }
            drop(conn);
            match verify(&pool).await {
                Ok(()) => break,
                Err(next) => {
                    assert_ne!(next.to_string(), error, "{make}");
                    error = next.to_string();
                }
            }
        }
        verify(&pool)
            .await
            .unwrap_or_else(|error| panic!("{make}: {error}"));
    }
    if DB::KIND == Kind::MariaDb {
        let defaults = "SELECT column_default FROM information_schema.columns \
             WHERE table_schema = database() AND table_name = 'notifications' AND column_name = 'event_id'";
        assert_eq!(db.texts(defaults).await, ["'it''s'"]);
    }
}

async fn tables_and_columns_that_are_not_there_are_told<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    db.run(&table::<DB>(", UNIQUE (event_id, channel))")).await;
    db.run("CREATE VIEW seen AS SELECT * FROM notifications")
        .await;
    let other = match DB::KIND {
        Kind::Postgres => "Notifications",
        Kind::MariaDb | Kind::Sqlite => "nowhere.notifications",
    };
    for (name, columns, word) in [
        (
            "notification",
            &KEY[..],
            "there is no table `notification`: make it first",
        ),
        (other, &KEY, "did you mean `"),
        (
            "seen",
            &KEY,
            "`seen` is not a table: name the one that is written to",
        ),
        (
            "notifications",
            &["event_id", "chanel"],
            "has no column `chanel`: it has `event_id`, `channel`, `account`, `note`",
        ),
        (
            "notifications",
            &["event_id", "event_id"],
            "column `event_id` is named twice",
        ),
        ("notifications", &[], "no column is named"),
        ("a.b.c", &KEY, "`a.b.c` is not the name of a table"),
        ("", &KEY, "`` is not the name of a table"),
        (
            "notifications; DROP TABLE notifications",
            &KEY,
            "there is no table",
        ),
        ("notifications' OR '1'='1", &KEY, "there is no table"),
        ("\"notifications\"\" OR 1\"", &KEY, "there is no table"),
    ] {
        let error = verify_backstop(&pool, name, columns.iter().copied()).await;
        let error = error.expect_err(name).to_string();
        assert!(error.contains(word), "{name}: {error}");
    }
    verify(&pool).await.unwrap();
}

async fn names_are_quoted<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    let quote = |name: &str| match DB::KIND {
        Kind::MariaDb => format!("`{}`", name.replace('`', "``")),
        Kind::Postgres | Kind::Sqlite => format!("\"{}\"", name.replace('"', "\"\"")),
    };
    for (table, named) in [
        ("Order", "Order"),
        ("odd.name", "\"odd.name\""),
        ("say \"when\" it's `so`", "say \"when\" it's `so`"),
        ("select", "`select`"),
        ("größe", "größe"),
    ] {
        let (text, quoted) = (text::<DB>(), quote(table));
        let (group, odd) = (quote("Group"), quote("it's \"odd\" %`"));
        db.run(&format!(
            "CREATE TABLE {quoted} ({group} {text} NOT NULL, {odd} {text} NOT NULL)"
        ))
        .await;
        let key = ["Group", "it's \"odd\" %`"];
        let error = verify_backstop(&pool, named, key)
            .await
            .unwrap_err()
            .to_string();
        let (_, way_out) = error.split_once("; run ").expect(&error);
        db.run(way_out).await;
        verify_backstop(&pool, named, key).await.unwrap();
        let error = verify_backstop(&pool, named, ["Group"])
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("is finer than the key (Group)"), "{error}");
        // A column's case is its own on Postgres only.
        let folded = verify_backstop(&pool, named, ["group", "it's \"odd\" %`"]).await;
        assert_eq!(folded.is_ok(), DB::KIND != Kind::Postgres, "{folded:?}");
    }
}

async fn a_table_of_another_schema<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    let mut conn = pool.acquire().await.unwrap();
    let other = match DB::KIND {
        Kind::Postgres => {
            db.run("CREATE SCHEMA \"other.one\"").await;
            "other.one".to_owned()
        }
        Kind::MariaDb => {
            // The name goes with the database: it is dropped at the end.
            let name = db.texts("SELECT database()").await.remove(0) + "_other";
            db.run(&format!("CREATE DATABASE {name}")).await;
            name
        }
        Kind::Sqlite => {
            DB::run(&mut conn, "ATTACH ':memory:' AS \"other.one\"")
                .await
                .unwrap();
            "other.one".to_owned()
        }
    };
    let quoted = if DB::KIND == Kind::MariaDb {
        other.clone()
    } else {
        format!("\"{other}\"")
    };
    // The same name in two schemas, the one with, the other without.
    let elsewhere = table::<DB>(", PRIMARY KEY (event_id, channel))")
        .replace("notifications", &format!("{quoted}.notifications"));
    DB::run(&mut conn, &elsewhere).await.unwrap();
    drop(conn);
    let named = format!("{quoted}.notifications");
    let result = verify_backstop(&pool, &named, KEY).await;
    let gone = verify_backstop(&pool, &format!("{quoted}.letters"), KEY)
        .await
        .unwrap_err();
    db.run(&table::<DB>(
        "); CREATE UNIQUE INDEX u ON notifications (event_id)",
    ))
    .await;
    let again = verify_backstop(&pool, &named, KEY).await;
    let here = verify(&pool).await.unwrap_err().to_string();
    if DB::KIND == Kind::MariaDb {
        db.run(&format!("DROP DATABASE {other}")).await;
    }
    result.unwrap();
    again.unwrap();
    assert!(here.contains("unique index `u`"), "{here}");
    assert!(gone.to_string().contains("there is no table"), "{gone}");
}

async fn it_leaves_everything_as_it_was<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    db.run(&table::<DB>(
        "); CREATE UNIQUE INDEX u ON notifications (event_id)",
    ))
    .await;
    let mut tx = pool.begin().await.unwrap();
    DB::run(
        &mut tx,
        "INSERT INTO notifications VALUES ('7', 'EMAIL', 1, NULL)",
    )
    .await
    .unwrap();
    // Beside a transaction that writes.
    let beside = db.pool(1).await;
    verify(&beside).await.unwrap_err();
    tx.commit().await.unwrap();
    verify(&pool).await.unwrap_err();
    assert_eq!(db.rows("notifications").await, 1);
    db.run("DROP TABLE notifications").await;
}

async fn an_error_of_it_is_no_message_s_fault<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.pool(1).await;
    let error = verify(&pool).await.unwrap_err();
    assert_eq!(disposition(&error), Disposition::Redeliver);
    assert!(!error.is_retryable() && !error.is_missing_key() && !error.is_transaction_lost());
    assert!(Error::find(&sqlx::Error::from(error)).is_some());
    pool.close().await;
    let spawned = tokio::spawn(async move { verify(&pool).await });
    let error = spawned.await.unwrap().unwrap_err();
    let source = std::error::Error::source(&error).expect("that of sqlx");
    assert!(matches!(
        source.downcast_ref(),
        Some(sqlx::Error::PoolClosed)
    ));
}

async fn few_rights_are_enough<DB: Engine>(db: &Fresh<DB>) {
    db.run(&table::<DB>(", UNIQUE (event_id, channel, account))"))
        .await;
    let options = DB::create_role(&db.options, "INSERT").await.unwrap();
    let pool: Pool<DB> = PoolOptions::new()
        .max_connections(1)
        .connect_with(options)
        .await
        .unwrap();
    let error = verify(&pool).await.unwrap_err().to_string();
    assert!(error.contains("is finer than the key"), "{error}");
    db.run("ALTER TABLE notifications ADD UNIQUE (event_id, channel)")
        .await;
    verify(&pool).await.unwrap();
    if DB::KIND == Kind::Postgres {
        // Of a table in a schema that it may not use.
        db.run("CREATE SCHEMA closed; ALTER TABLE notifications SET SCHEMA closed")
            .await;
        verify_backstop(&pool, "closed.notifications", KEY)
            .await
            .unwrap();
        let error = verify(&pool).await.unwrap_err().to_string();
        assert!(
            error.contains("did you mean `closed.notifications`?"),
            "{error}"
        );
    }
}
