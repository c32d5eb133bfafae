//! What is a key of its own, what is a duplicate, what is an error.

use std::sync::atomic::{AtomicUsize, Ordering};

use idempotent_runtime::{Error, Outcome, idempotent, transact};
use idempotent_tests::{AppError, Double, Engine, Fresh, Guarded, Kind};
use sqlx::{Pool, Transaction};
use uuid::Uuid;

with_every_guard!(
    look_alikes_are_messages_of_their_own,
    keys_of_any_length_are_told_apart,
    a_nul_byte_is_a_character_like_any_other,
    after_a_duplicate_the_transaction_goes_on,
    a_second_delivery_in_the_same_transaction_is_a_duplicate,
    without_a_table_the_handler_does_not_run,
    a_violated_constraint_of_the_table_is_never_a_duplicate,
    another_unique_index_of_the_table_is_never_a_duplicate,
);

on_every_database!(
    parts_do_not_run_together,
    a_missing_part_runs_nothing_and_stores_nothing,
    nullable_parts_are_values,
    spellings_of_a_uuid_are_one_key_and_of_a_string_many,
    the_stored_text_is_the_same_on_every_database,
    the_claim_shows_scope_key_and_a_stable_id,
    a_transaction_of_another_name,
    a_table_of_another_name,
);

/// Counts its runs.
#[idempotent(key(a, b), skip(runs), scope = "pair")]
async fn pair<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    a: &str,
    b: &str,
    runs: &AtomicUsize,
) -> Result<(), Error> {
    let _ = tx;
    runs.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

/// Delivers each text twice: the first runs, the second does not.
async fn are_distinct<DB: Engine, G: Guarded>(db: &Fresh<DB>, pool: &Pool<DB>, ids: &[&str]) {
    let before = db.rows("processed_messages").await;
    for is_duplicate in [false, true] {
        for id in ids {
            let mut runs = 0;
            let mut tx = pool.begin().await.unwrap();
            let outcome = G::deliver(&mut tx, id, async |_| {
                runs += 1;
                Ok(())
            })
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", id.escape_debug()));
            tx.commit().await.unwrap();
            assert_eq!(
                outcome.is_duplicate(),
                is_duplicate,
                "{}",
                id.escape_debug()
            );
            assert_eq!(runs, usize::from(!is_duplicate), "{}", id.escape_debug());
        }
    }
    let stored = db.rows("processed_messages").await - before;
    assert_eq!(stored, i64::try_from(ids.len()).unwrap(), "{ids:?}");
}

async fn look_alikes_are_messages_of_their_own<DB: Engine, G: Guarded>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    are_distinct::<DB, G>(
        db,
        &pool,
        &[
            "ORD-1", "ord-1", "é", "e", "ß", "ss", "🎩", "💥", "a", "a ", "a\t", " a", "e\u{301}",
            "ı", "i", "１", "1", "a'b", "a\"b", "a\\b", "a`b", "%41", "A", "~", "null", "{key}",
            "$1", "?", ";--", "a/b", "a%2Fb",
        ],
    )
    .await;
}

async fn keys_of_any_length_are_told_apart<DB: Engine, G: Guarded>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let mut texts = Vec::new();
    for length in [1, 255, 256, 700, 768, 2_700, 3_200, 100_000] {
        texts.push("a".repeat(length));
        texts.push(random_text(length));
    }
    let long = random_text(4_999);
    texts.extend([format!("{long}x"), format!("{long}y")]);
    let ids: Vec<&str> = texts.iter().map(|text| &**text).collect();
    are_distinct::<DB, G>(db, &pool, &ids).await;
    let key = db.key_column();
    let long = format!("SELECT count(*) FROM processed_messages WHERE length({key}) > 190");
    let cut = format!("SELECT count(*) FROM processed_messages WHERE length({key}) = 255");
    // Two of 255 bytes fit as they are; what is longer is 190 bytes, `#`, and 64 of a digest.
    assert_eq!((db.number(&long).await, db.number(&cut).await), (16, 16));
}

/// Does not compress.
fn random_text(length: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ length as u64;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + u8::try_from(state % 26).unwrap())
    })
    .take(length)
    .collect()
}

async fn a_nul_byte_is_a_character_like_any_other<DB: Engine, G: Guarded>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    are_distinct::<DB, G>(db, &pool, &["a\0b", "a\0c", "\0", "ab", "a"]).await;
}

async fn after_a_duplicate_the_transaction_goes_on<DB: Engine, G: Guarded>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    let double = Double::new();
    let first = transact!(&pool, tx => G::record(tx, "1", &double))
        .await
        .unwrap();
    assert_eq!(first, Outcome::Processed(()));

    let mut tx = pool.begin().await.unwrap();
    let second = G::record(&mut tx, "1", &double).await.unwrap();
    assert_eq!(second, Outcome::Duplicate);
    DB::run(&mut tx, "INSERT INTO letters (id) VALUES ('1')")
        .await
        .unwrap();
    tx.commit().await.unwrap();

    assert_eq!(double.runs(), 1);
    assert_eq!(db.stored("1").await, (1, 1));
    assert_eq!(db.rows("letters").await, 1);
}

async fn a_second_delivery_in_the_same_transaction_is_a_duplicate<DB: Engine, G: Guarded>(
    db: &Fresh<DB>,
) {
    let pool = db.prepared(1).await;
    let double = Double::new();
    let mut tx = pool.begin().await.unwrap();
    assert_eq!(
        G::record(&mut tx, "1", &double).await.unwrap(),
        Outcome::Processed(())
    );
    assert_eq!(
        G::record(&mut tx, "1", &double).await.unwrap(),
        Outcome::Duplicate
    );
    assert_eq!(
        G::record(&mut tx, "2", &double).await.unwrap(),
        Outcome::Processed(())
    );
    tx.commit().await.unwrap();
    assert_eq!(double.runs(), 2);
    assert_eq!(
        (db.stored("1").await, db.stored("2").await),
        ((1, 1), (1, 1))
    );
}

async fn without_a_table_the_handler_does_not_run<DB: Engine, G: Guarded>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    db.run("DROP TABLE processed_messages").await;
    let double = Double::new();
    let outcome = transact!(&pool, tx => G::record(tx, "1", &double)).await;
    let Err(AppError::Idempotent(error)) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        !error.is_retryable() && !error.is_transaction_lost(),
        "{error:?}"
    );
    assert_eq!(double.runs(), 0);
}

async fn a_violated_constraint_of_the_table_is_never_a_duplicate<DB: Engine, G: Guarded>(
    db: &Fresh<DB>,
) {
    let pool = db.prepared(1).await;
    db.run(match DB::KIND {
        Kind::Postgres => "ALTER TABLE processed_messages ADD CHECK (key <> 'refused')",
        Kind::MariaDb => "ALTER TABLE processed_messages ADD CHECK (`key` <> 'refused')",
        Kind::Sqlite => {
            "CREATE TRIGGER refuses BEFORE INSERT ON processed_messages WHEN new.key = 'refused' \
             BEGIN SELECT RAISE(ABORT, 'refused'); END"
        }
    })
    .await;
    is_an_error_and_runs_nothing::<DB, G>(db, &pool, "refused").await;
}

async fn another_unique_index_of_the_table_is_never_a_duplicate<DB: Engine, G: Guarded>(
    db: &Fresh<DB>,
) {
    let pool = db.prepared(1).await;
    db.run("CREATE UNIQUE INDEX one_per_scope ON processed_messages (scope)")
        .await;
    let double = Double::new();
    let first = transact!(&pool, tx => G::record(tx, "1", &double))
        .await
        .unwrap();
    assert_eq!(first, Outcome::Processed(()));
    let again = transact!(&pool, tx => G::record(tx, "1", &double))
        .await
        .unwrap();
    assert_eq!(again, Outcome::Duplicate);
    is_an_error_and_runs_nothing::<DB, G>(db, &pool, "2").await;
}

async fn is_an_error_and_runs_nothing<DB: Engine, G: Guarded>(
    db: &Fresh<DB>,
    pool: &Pool<DB>,
    id: &str,
) {
    let double = Double::new();
    let outcome = transact!(pool, tx => G::record(tx, id, &double)).await;
    let Err(AppError::Idempotent(error)) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        !error.is_retryable() && !error.is_transaction_lost(),
        "{error:?}"
    );
    assert_eq!(double.runs(), 0);
    assert_eq!(db.stored(id).await, (0, 0));
}

async fn parts_do_not_run_together<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let separators = [
        ":", "|", "_", ",", "#", "\\", "\x1f", "%3A", "/", "%2F", "~", "'", "\0",
    ];
    let mut pairs: Vec<(String, String)> = separators
        .iter()
        .flat_map(|s| {
            [
                (format!("a{s}b"), "c".to_owned()),
                ("a".to_owned(), format!("b{s}c")),
            ]
        })
        .collect();
    for (a, b) in [
        ("foo", "bar_baz"),
        ("foo_bar", "baz"),
        ("12", "3"),
        ("1", "23"),
    ] {
        pairs.push((a.to_owned(), b.to_owned()));
    }
    let runs = AtomicUsize::new(0);
    for is_duplicate in [false, true] {
        for (a, b) in &pairs {
            let outcome = transact!(&pool, tx => pair(tx, a, b, &runs)).await.unwrap();
            assert_eq!(outcome.is_duplicate(), is_duplicate, "{a:?}, {b:?}");
        }
    }
    assert_eq!(runs.load(Ordering::SeqCst), pairs.len());
    assert_eq!(
        db.rows("processed_messages").await,
        i64::try_from(pairs.len()).unwrap()
    );
}

#[idempotent(key = "required(id)", skip(runs), scope = "required")]
async fn with_required<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: Option<&str>,
    runs: &AtomicUsize,
) -> Result<(), Error> {
    let _ = tx;
    runs.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

async fn a_missing_part_runs_nothing_and_stores_nothing<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let runs = AtomicUsize::new(0);
    let mut tx = pool.begin().await.unwrap();
    for id in [None, None, Some(""), Some("")] {
        let error = with_required(&mut tx, id, &runs).await.unwrap_err();
        assert!(error.is_missing_key(), "{error:?}");
    }
    // Nothing was asked of the database: the transaction is as it was.
    let outcome = with_required(&mut tx, Some("1"), &runs).await.unwrap();
    assert_eq!(outcome, Outcome::Processed(()));
    tx.commit().await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(db.rows("processed_messages").await, 1);
}

#[idempotent(key = "nullable(id), channel", skip(runs), scope = "nullable")]
async fn with_nullable<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: Option<&str>,
    channel: &str,
    runs: &AtomicUsize,
) -> Result<(), Error> {
    let _ = tx;
    runs.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

async fn nullable_parts_are_values<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let runs = AtomicUsize::new(0);
    let ids = [None, Some(""), Some("None"), Some("null"), Some("~")];
    for is_duplicate in [false, true] {
        for id in ids {
            let outcome = transact!(&pool, tx => with_nullable(tx, id, "x", &runs))
                .await
                .unwrap();
            assert_eq!(outcome.is_duplicate(), is_duplicate, "{id:?}");
        }
    }
    assert_eq!(runs.load(Ordering::SeqCst), ids.len());
}

#[idempotent(key(id), scope = "uuid")]
async fn with_uuid<DB: Engine>(tx: &mut Transaction<'_, DB>, id: Uuid) -> Result<(), Error> {
    let _ = tx;
    Ok(())
}

#[idempotent(key(id), scope = "uuid-text")]
async fn with_uuid_text<DB: Engine>(tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), Error> {
    let _ = tx;
    Ok(())
}

async fn spellings_of_a_uuid_are_one_key_and_of_a_string_many<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let spellings = [
        "550E8400-E29B-41D4-A716-446655440000",
        "550e8400-e29b-41d4-a716-446655440000",
        "{550e8400-e29b-41d4-a716-446655440000}",
        "urn:uuid:550e8400-e29b-41d4-a716-446655440000",
        "550e8400e29b41d4a716446655440000",
    ];
    for (round, spelling) in spellings.into_iter().enumerate() {
        let id: Uuid = spelling.parse().unwrap();
        let outcome = transact!(&pool, tx => with_uuid(tx, id)).await.unwrap();
        assert_eq!(outcome.is_duplicate(), round > 0, "{spelling}");
        let outcome = transact!(&pool, tx => with_uuid_text(tx, spelling))
            .await
            .unwrap();
        assert!(!outcome.is_duplicate(), "{spelling}");
    }
    let stored = format!(
        "SELECT {} FROM processed_messages WHERE scope = 'uuid'",
        db.key_column()
    );
    assert_eq!(
        db.texts(&stored).await,
        ["550e8400-e29b-41d4-a716-446655440000"]
    );
}

#[derive(Debug, idempotent_runtime::KeyPart)]
enum Channel {
    Email,
    Webhook(u16),
}

#[idempotent(key(id, name, channel, bytes, part), scope = "stored.text:(v1),-")]
async fn with_many_types<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: i64,
    name: &str,
    channel: Channel,
    bytes: &[u8],
    part: (u8, bool),
) -> Result<(), Error> {
    let _ = tx;
    Ok(())
}

async fn the_stored_text_is_the_same_on_every_database<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    for (id, channel) in [(-42, Channel::Email), (7, Channel::Webhook(80))] {
        let mut tx = pool.begin().await.unwrap();
        let outcome = with_many_types(&mut tx, id, "É/'x' ", channel, b"\x00\xff", (1, true)).await;
        assert!(matches!(outcome, Ok(Outcome::Processed(()))), "{outcome:?}");
        tx.commit().await.unwrap();
    }
    let key = db.key_column();
    assert_eq!(
        db.texts(&format!(
            "SELECT {key} FROM processed_messages ORDER BY {key}"
        ))
        .await,
        [
            "-42/%C3%89%2F%27x%27%20/Email/00ff/1/true",
            "7/%C3%89%2F%27x%27%20/Webhook(80)/00ff/1/true",
        ]
    );
    assert_eq!(
        db.texts("SELECT DISTINCT scope FROM processed_messages")
            .await,
        ["stored.text:(v1),-"]
    );
}

#[idempotent(key(id), scope = "bound", bind = claim)]
async fn with_claim<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: i64,
) -> Result<(String, String, Uuid), Error> {
    let _ = tx;
    Ok((
        claim.scope().to_owned(),
        claim.key().to_owned(),
        claim.derive("charge"),
    ))
}

async fn the_claim_shows_scope_key_and_a_stable_id<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let namespace = Uuid::parse_str("53e8167a-c844-50c2-b0b5-47d97459632a").unwrap();
    for _ in 0..2 {
        // Rolled back, so that it runs again.
        let mut tx = pool.begin().await.unwrap();
        let outcome = with_claim(&mut tx, 7).await.unwrap();
        assert_eq!(
            outcome,
            Outcome::Processed((
                "bound".to_owned(),
                "7".to_owned(),
                Uuid::new_v5(&namespace, b"bound\n7\ncharge"),
            ))
        );
        tx.rollback().await.unwrap();
    }
}

#[idempotent(key(tx), tx = conn, scope = "other-name")]
async fn with_tx_as_a_message<DB: Engine>(
    tx: i64,
    conn: &mut Transaction<'_, DB>,
) -> Result<i64, Error> {
    DB::run(conn, "INSERT INTO effects (id) VALUES ('1')").await?;
    Ok(tx)
}

async fn a_transaction_of_another_name<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let outcome = transact!(&pool, t => with_tx_as_a_message(1, t))
        .await
        .unwrap();
    assert_eq!(outcome, Outcome::Processed(1));
    assert_eq!(db.stored("1").await, (1, 1));
}

#[idempotent(key(id), scope = "elsewhere", table = "seen")]
async fn with_table<DB: Engine>(tx: &mut Transaction<'_, DB>, id: i64) -> Result<(), Error> {
    let _ = tx;
    Ok(())
}

async fn a_table_of_another_name<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    idempotent_runtime::Table::named("seen")
        .unwrap()
        .migrate(&pool)
        .await
        .unwrap();
    assert_eq!(
        transact!(&pool, tx => with_table(tx, 1)).await.unwrap(),
        Outcome::Processed(())
    );
    assert_eq!(
        transact!(&pool, tx => with_table(tx, 1)).await.unwrap(),
        Outcome::Duplicate
    );
    assert_eq!(
        (db.rows("seen").await, db.rows("processed_messages").await),
        (1, 0)
    );
}

/// Locales differ, codes do not. (No locale but C is installed where this was
/// written, so that it looks at the source, not at a translated server.)
#[test]
fn no_source_reads_the_text_of_an_error() {
    fn sources(directory: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../idempotent-runtime/src");
    sources(&root, &mut found);
    assert!(found.len() > 10);
    for path in found {
        let source = std::fs::read_to_string(&path).unwrap();
        for reading in [
            ".message()",
            "error.to_string().contains",
            ".starts_with(\"ERROR",
        ] {
            assert!(!source.contains(reading), "{}: {reading}", path.display());
        }
    }
}
