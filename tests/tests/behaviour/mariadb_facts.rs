//! What MariaDB does that the store is built around: `docs/mariadb.md` in
//! tests. None of them calls the runtime, except where its answer is the point.

use idempotent_runtime::{Outcome, transact};
use idempotent_tests::{
    AppError, CutAt, Double, Engine, Fresh, Guarded, Moment, Savepoint, Verify, until,
};
use sqlx::mysql::{MySql, MySqlDatabaseError};
use sqlx::pool::PoolConnection;
use sqlx::{Connection, Executor};

on_mariadb!(
    on_duplicate_key_update_cannot_tell_new_from_old,
    insert_ignore_turns_errors_into_warnings,
    a_duplicate_undoes_its_statement_and_the_transaction_lives_on,
    a_plain_read_misses_a_row_committed_after_the_snapshot_and_a_locking_read_finds_it,
    ascii_bin_ignores_trailing_blanks,
    a_locking_look_before_the_insert_deadlocks_on_different_keys,
    a_swallowed_deadlock_and_another_commit_fool_a_check_of_the_row,
    a_delete_after_a_deadlock_commits_and_takes_another_consumers_row,
    ddl_commits,
    statements_sent_together_stop_at_the_first_error,
    a_deadlock_that_the_handler_returns_is_its_own_error_though_another_consumer_was_faster,
    skip_locked_in_a_derived_table_holds_for_the_delete,
    at_read_committed_a_pruner_locks_no_gaps,
    a_word_for_newer_servers_is_a_comment_to_older_ones,
    the_answer_to_a_statement_that_was_cut_off_is_given_to_the_next_which_is_not_sent,
);

const CLAIM: &str = "INSERT INTO processed_messages (scope, `key`) VALUES ('facts', '1')";

async fn conn(db: &Fresh<MySql>) -> PoolConnection<MySql> {
    db.pool(1).await.acquire().await.unwrap()
}

fn number(error: &sqlx::Error) -> u16 {
    error
        .as_database_error()
        .unwrap()
        .downcast_ref::<MySqlDatabaseError>()
        .number()
}

/// sqlx sets `CLIENT_FOUND_ROWS`: found counts as affected.
async fn on_duplicate_key_update_cannot_tell_new_from_old(db: &Fresh<MySql>) {
    db.prepare().await;
    let mut conn = conn(db).await;
    let claim = format!("{CLAIM} ON DUPLICATE KEY UPDATE scope = scope");
    let new = MySql::run(&mut conn, &claim).await.unwrap();
    let old = MySql::run(&mut conn, &claim).await.unwrap();
    assert_eq!((new, old), (1, 1));
}

async fn insert_ignore_turns_errors_into_warnings(db: &Fresh<MySql>) {
    db.run("CREATE TABLE t (id varchar(3) NOT NULL PRIMARY KEY, n int NOT NULL)")
        .await;
    let mut conn = conn(db).await;
    for (insert, error) in [
        ("INTO t VALUES ('abcd', 1)", 1406),
        ("INTO t (id, n) VALUES ('x', NULL)", 1048),
    ] {
        let failed = MySql::run(&mut conn, &format!("INSERT {insert}"))
            .await
            .unwrap_err();
        assert_eq!(number(&failed), error);
        let ignored = MySql::run(&mut conn, &format!("INSERT IGNORE {insert}"))
            .await
            .unwrap();
        assert_eq!(ignored, 1, "{insert}");
    }
    // Cut to `abc`, two messages are one.
    let other = MySql::run(&mut conn, "INSERT IGNORE INTO t VALUES ('abce', 1)")
        .await
        .unwrap();
    assert_eq!(other, 0);
    assert_eq!(db.texts("SELECT id FROM t ORDER BY id").await, ["abc", "x"]);
}

async fn a_duplicate_undoes_its_statement_and_the_transaction_lives_on(db: &Fresh<MySql>) {
    db.prepare().await;
    db.run(CLAIM).await;
    let mut conn = conn(db).await;
    let mut tx = conn.begin().await.unwrap();
    MySql::run(&mut tx, "INSERT INTO effects (id) VALUES ('before')")
        .await
        .unwrap();
    let both =
        "INSERT INTO processed_messages (scope, `key`) VALUES ('facts', '0'), ('facts', '1')";
    let error = MySql::run(&mut tx, both).await.unwrap_err();
    assert_eq!(number(&error), 1062);
    MySql::run(&mut tx, "INSERT INTO effects (id) VALUES ('after')")
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        db.texts("SELECT id FROM effects ORDER BY id").await,
        ["after", "before"]
    );
    assert_eq!(
        db.rows("processed_messages").await,
        1,
        "all rows of the statement went"
    );
}

async fn a_plain_read_misses_a_row_committed_after_the_snapshot_and_a_locking_read_finds_it(
    db: &Fresh<MySql>,
) {
    db.prepare().await;
    let mut conn = conn(db).await;
    let mut tx = conn.begin().await.unwrap();
    let count = "SELECT count(*) FROM processed_messages";
    assert_eq!(MySql::number(&mut tx, count).await.unwrap(), 0);
    db.run(CLAIM).await;
    let error = MySql::run(&mut tx, CLAIM).await.unwrap_err();
    assert_eq!(number(&error), 1062);
    assert_eq!(
        MySql::number(&mut tx, count).await.unwrap(),
        0,
        "a plain read"
    );
    let locking = format!("{count} WHERE scope = 'facts' AND `key` = '1' LOCK IN SHARE MODE");
    assert_eq!(
        MySql::number(&mut tx, &locking).await.unwrap(),
        1,
        "a locking read"
    );
}

async fn ascii_bin_ignores_trailing_blanks(db: &Fresh<MySql>) {
    db.prepare().await;
    db.run("INSERT INTO processed_messages (scope, `key`) VALUES ('facts', 'a')")
        .await;
    let mut conn = conn(db).await;
    let blank = "INSERT INTO processed_messages (scope, `key`) VALUES ('facts', 'a ')";
    assert_eq!(
        number(&MySql::run(&mut conn, blank).await.unwrap_err()),
        1062
    );
    let case = "INSERT INTO processed_messages (scope, `key`) VALUES ('facts', 'A')";
    assert_eq!(MySql::run(&mut conn, case).await.unwrap(), 1);
}

/// Both look into one gap, and lock it; then neither may insert into it.
async fn a_locking_look_before_the_insert_deadlocks_on_different_keys(db: &Fresh<MySql>) {
    db.prepare().await;
    let (mut one, mut two) = (conn(db).await, conn(db).await);
    let insert =
        |key| format!("INSERT INTO `processed_messages` (scope, `key`) VALUES ('facts', '{key}')");
    let look = |key| {
        format!(
            "SELECT count(*) FROM processed_messages WHERE scope = 'facts' AND `key` = '{key}' \
             FOR UPDATE"
        )
    };
    for (tx, key) in [(&mut one, 1), (&mut two, 2)] {
        MySql::run(tx, "START TRANSACTION").await.unwrap();
        assert_eq!(MySql::number(tx, &look(key)).await.unwrap(), 0);
    }
    let (first, second) = (insert(1), insert(2));
    let inserts = tokio::join!(MySql::run(&mut one, &first), async {
        db.until_waiting(1).await;
        MySql::run(&mut two, &second).await
    });
    let errors = [inserts.0, inserts.1].map(Result::err);
    let errors: Vec<u16> = errors.iter().flatten().map(number).collect();
    assert_eq!(errors, [1213]);

    // Inserted first, none waits for the other.
    for (tx, key) in [(&mut one, 1), (&mut two, 2)] {
        MySql::run(tx, "ROLLBACK; START TRANSACTION").await.unwrap();
        MySql::run(tx, &insert(key)).await.unwrap();
    }
    for tx in [&mut one, &mut two] {
        MySql::run(tx, "COMMIT").await.unwrap();
    }
    assert_eq!(db.rows("processed_messages").await, 2);
}

/// Makes the connection's transaction the victim of a deadlock, after its
/// statement; returns the error. What it did is undone, and its session has no
/// transaction.
pub(super) async fn deadlock(db: &Fresh<MySql>, tx: &mut sqlx::MySqlConnection) -> sqlx::Error {
    let mut other = conn(db).await;
    let mut other = other.begin().await.unwrap();
    // Who has written less is the victim.
    for n in 0..50 {
        let heavier = format!("INSERT INTO letters (id) VALUES ('heavier-{n}')");
        MySql::run(&mut other, &heavier).await.unwrap();
    }
    let take =
        |account: u8| format!("UPDATE accounts SET amount = amount + 1 WHERE id = {account}");
    MySql::run(&mut other, &take(2)).await.unwrap();
    MySql::run(tx, &take(1)).await.unwrap();
    let sql = format!("/* waits */ {}", take(1));
    let waits = MySql::run(&mut other, &sql);
    let meet = async {
        let waiting = "SELECT count(*) FROM information_schema.processlist WHERE db = database() \
             AND info LIKE '%waits%UPDATE%' AND id <> connection_id()";
        until("the other transaction waits", async || {
            db.number(waiting).await > 0
        })
        .await;
        MySql::run(tx, &take(2)).await.unwrap_err()
    };
    let (taken, lost) = tokio::join!(waits, meet);
    taken.unwrap();
    other.rollback().await.unwrap();
    assert_eq!(number(&lost), 1213);
    lost
}

async fn a_swallowed_deadlock_and_another_commit_fool_a_check_of_the_row(db: &Fresh<MySql>) {
    db.prepare().await;
    let mut conn = conn(db).await;
    let mut tx = conn.begin().await.unwrap();
    MySql::run(&mut tx, CLAIM).await.unwrap();
    let _swallowed = deadlock(db, &mut tx).await;
    // Another consumer gets the key, and commits.
    db.run(&format!("{CLAIM}; INSERT INTO effects (id) VALUES ('1')"))
        .await;
    MySql::run(&mut tx, "INSERT INTO effects (id) VALUES ('1')")
        .await
        .unwrap();
    let row = "SELECT count(*) FROM processed_messages WHERE scope = 'facts' AND `key` = '1'";
    assert_eq!(
        MySql::number(&mut tx, row).await.unwrap(),
        1,
        "the row is there, and another's"
    );
    tx.commit().await.unwrap();
    assert_eq!(db.rows("effects").await, 2);

    // The store's proof is a savepoint.
    let pool = db.pool(2).await;
    is_not_fooled::<Verify>(db, &pool, "verify").await;
    is_not_fooled::<Savepoint>(db, &pool, "savepoint").await;
}

async fn is_not_fooled<G: Guarded>(db: &Fresh<MySql>, pool: &sqlx::MySqlPool, id: &str) {
    let double = Double::new();
    let mut tx = pool.begin().await.unwrap();
    let outcome = G::deliver(
        &mut tx,
        id,
        async |tx: &mut sqlx::Transaction<'_, MySql>| {
            let _swallowed = deadlock(db, tx).await;
            let other = transact!(pool, tx => G::record(tx, id, &double)).await?;
            assert_eq!(other, Outcome::Processed(()));
            Ok(())
        },
    )
    .await;
    assert!(outcome.is_err_and(|error| error.is_transaction_lost()));
    drop(tx);
    assert_eq!(db.stored(id).await, (1, 1));
}

async fn a_delete_after_a_deadlock_commits_and_takes_another_consumers_row(db: &Fresh<MySql>) {
    db.prepare().await;
    let mut conn = conn(db).await;
    let mut tx = conn.begin().await.unwrap();
    MySql::run(&mut tx, CLAIM).await.unwrap();
    let _returned = deadlock(db, &mut tx).await;
    db.run(CLAIM).await;
    MySql::run(
        &mut tx,
        "DELETE FROM processed_messages WHERE scope = 'facts' AND `key` = '1'",
    )
    .await
    .unwrap();
    assert_eq!(
        db.rows("processed_messages").await,
        0,
        "gone before any commit"
    );
    drop(tx);
}

/// The undo finds no savepoint, and a row: that of the other consumer. It
/// stays, and the error is the handler's.
async fn a_deadlock_that_the_handler_returns_is_its_own_error_though_another_consumer_was_faster(
    db: &Fresh<MySql>,
) {
    db.prepare().await;
    let pool = db.pool(2).await;
    returns_its_deadlock::<Verify>(db, &pool, "verify").await;
    returns_its_deadlock::<Savepoint>(db, &pool, "savepoint").await;
}

async fn returns_its_deadlock<G: Guarded>(db: &Fresh<MySql>, pool: &sqlx::MySqlPool, id: &str) {
    let double = Double::new();
    let mut tx = pool.begin().await.unwrap();
    let outcome = G::deliver(
        &mut tx,
        id,
        async |tx: &mut sqlx::Transaction<'_, MySql>| {
            let returned = deadlock(db, tx).await;
            let other = transact!(pool, tx => G::record(tx, id, &double)).await?;
            assert_eq!(other, Outcome::Processed(()));
            Err(returned.into())
        },
    )
    .await;
    drop(tx);
    assert_eq!(
        db.stored(id).await,
        (1, 1),
        "the other consumer's row stays"
    );
    let error = outcome.unwrap_err();
    assert!(matches!(error, AppError::Database(_)), "{error:?}");
}

async fn ddl_commits(db: &Fresh<MySql>) {
    db.prepare().await;
    let mut conn = conn(db).await;
    let mut tx = conn.begin().await.unwrap();
    tx.execute("INSERT INTO effects (id) VALUES ('1')")
        .await
        .unwrap();
    tx.execute("CREATE TABLE t (id int)").await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(db.rows("effects").await, 1);
}

async fn statements_sent_together_stop_at_the_first_error(db: &Fresh<MySql>) {
    db.prepare().await;
    db.run(CLAIM).await;
    let mut conn = conn(db).await;
    let mut tx = conn.begin().await.unwrap();
    let error = MySql::run(
        &mut tx,
        "RELEASE SAVEPOINT nowhere; DELETE FROM processed_messages",
    )
    .await
    .unwrap_err();
    assert_eq!(number(&error), 1305);
    tx.commit().await.unwrap();
    assert_eq!(db.rows("processed_messages").await, 1);
}

/// The batch of a pruner, as far as the facts go.
const PRUNE: &str = "DELETE t FROM (SELECT scope, `key` FROM processed_messages \
     WHERE expires_at <= utc_timestamp(6) ORDER BY expires_at LIMIT 10 FOR UPDATE SKIP LOCKED) AS due \
     STRAIGHT_JOIN processed_messages AS t USING (scope, `key`)";

/// Five rows that have expired, and one that has not.
async fn expiring(db: &Fresh<MySql>) {
    db.prepare().await;
    db.run(
        "INSERT INTO processed_messages (scope, `key`, expires_at) \
         SELECT 'facts', seq, utc_timestamp(6) + INTERVAL IF(seq = 6, 1000, CAST(seq AS signed) - 6) SECOND FROM seq_1_to_6",
    )
    .await;
}

async fn skip_locked_in_a_derived_table_holds_for_the_delete(db: &Fresh<MySql>) {
    expiring(db).await;
    let (mut one, mut other) = (conn(db).await, conn(db).await);
    let mut holder = one.begin().await.unwrap();
    // A duplicate locks the row that it meets.
    let error = MySql::run(&mut holder, CLAIM).await.unwrap_err();
    assert_eq!(number(&error), 1062);
    MySql::run(&mut other, "SET innodb_lock_wait_timeout = 1")
        .await
        .unwrap();
    assert_eq!(MySql::run(&mut other, PRUNE).await.unwrap(), 4);
    let waiting = "DELETE FROM processed_messages WHERE expires_at <= utc_timestamp(6)";
    let error = MySql::run(&mut other, waiting).await.unwrap_err();
    assert_eq!(number(&error), 1205);
    holder.rollback().await.unwrap();
    assert_eq!(MySql::run(&mut other, PRUNE).await.unwrap(), 1);
}

async fn at_read_committed_a_pruner_locks_no_gaps(db: &Fresh<MySql>) {
    for (isolation, blocked) in [("REPEATABLE READ", true), ("READ COMMITTED", false)] {
        db.run("DROP TABLE IF EXISTS processed_messages, effects, letters, accounts")
            .await;
        expiring(db).await;
        let (mut one, mut other) = (conn(db).await, conn(db).await);
        let begin = format!("SET TRANSACTION ISOLATION LEVEL {isolation}; START TRANSACTION");
        MySql::run(&mut one, &begin).await.unwrap();
        assert_eq!(MySql::run(&mut one, PRUNE).await.unwrap(), 5);
        // Of another key, which expires before the last row.
        let claim = "SET innodb_lock_wait_timeout = 1; INSERT INTO processed_messages (scope, `key`, expires_at) \
             VALUES ('facts', 'new', utc_timestamp(6) + INTERVAL 500 SECOND)";
        let claimed = MySql::run(&mut other, claim).await;
        let error = claimed.as_ref().err().map(number);
        assert_eq!(error, blocked.then_some(1205), "{isolation}: {claimed:?}");
        MySql::run(&mut one, "ROLLBACK").await.unwrap();
    }
}

async fn a_word_for_newer_servers_is_a_comment_to_older_ones(db: &Fresh<MySql>) {
    for newer in ["/*M!990000 no such words */", "/*!80001 no such words */"] {
        assert_eq!(db.number(&format!("SELECT 1 {newer}")).await, 1);
    }
    assert_eq!(db.number("SELECT 1 /*M!100300 + 1 */").await, 2);
}

/// Of sqlx 0.9.0.
async fn the_answer_to_a_statement_that_was_cut_off_is_given_to_the_next_which_is_not_sent(
    db: &Fresh<MySql>,
) {
    db.prepare().await;
    db.run(CLAIM).await;
    let mut conn = conn(db).await;
    let write = "INSERT INTO letters (id) VALUES ('next')";
    // However fast the answer is, sooner or later somebody has to wait for it.
    until("a statement is cut off", async || {
        let claim = CutAt::new(1, Moment::Asked, MySql::run(&mut conn, CLAIM));
        claim.await.is_none()
    })
    .await;
    let error = MySql::run(&mut conn, write).await.unwrap_err();
    assert_eq!(number(&error), 1062);
    assert_eq!(db.rows("letters").await, 0);
    MySql::run(&mut conn, write).await.unwrap();
    assert_eq!(db.rows("letters").await, 1);
}
