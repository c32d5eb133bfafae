//! The COMMIT arrives, its answer does not.

use idempotent_runtime::{Outcome, transact};
use idempotent_tests::{
    Double, Fresh, Proxy, Recorder, Replayed, ReplayedUnderSavepoint, Savepoint, Verify,
};
use sqlx::pool::PoolOptions;
use sqlx::{MySql, Pool, Postgres};

use idempotent_tests::Engine;

mod postgres {
    #[test]
    #[cfg_attr(not(has_postgres), ignore = "needs Postgres: run `cargo xtask test`")]
    fn a_lost_answer_to_commit_ends_as_a_duplicate_with_one_effect() {
        idempotent_tests::in_fresh_database::<sqlx::Postgres>(super::on_postgres);
    }
}

mod mariadb {
    #[test]
    #[cfg_attr(not(has_mariadb), ignore = "needs MariaDB: run `cargo xtask test`")]
    fn a_lost_answer_to_commit_ends_as_a_duplicate_with_one_effect() {
        idempotent_tests::in_fresh_database::<sqlx::MySql>(super::on_mariadb);
    }
}

async fn on_postgres(db: &Fresh<Postgres>) {
    db.prepare().await;
    let proxy = Proxy::start(db.options.get_host(), db.options.get_port()).await;
    let options = db.options.clone().host("127.0.0.1").port(proxy.port());
    let pool = PoolOptions::new()
        .max_connections(1)
        .connect_with(options)
        .await
        .unwrap();
    loses_its_answer::<_, Verify>(db, &pool, &proxy, "verify").await;
    loses_its_answer::<_, Savepoint>(db, &pool, &proxy, "savepoint").await;
    loses_its_answer::<_, Replayed>(db, &pool, &proxy, "replayed").await;
    loses_its_answer::<_, ReplayedUnderSavepoint>(db, &pool, &proxy, "both").await;
}

async fn on_mariadb(db: &Fresh<MySql>) {
    db.prepare().await;
    let proxy = Proxy::start(db.options.get_host(), db.options.get_port()).await;
    let options = db.options.clone().host("127.0.0.1").port(proxy.port());
    let pool = PoolOptions::new()
        .max_connections(1)
        .connect_with(options)
        .await
        .unwrap();
    loses_its_answer::<_, Verify>(db, &pool, &proxy, "verify").await;
    loses_its_answer::<_, Savepoint>(db, &pool, &proxy, "savepoint").await;
    loses_its_answer::<_, Replayed>(db, &pool, &proxy, "replayed").await;
    loses_its_answer::<_, ReplayedUnderSavepoint>(db, &pool, &proxy, "both").await;
}

async fn loses_its_answer<DB: Engine, G: Recorder>(
    db: &Fresh<DB>,
    pool: &Pool<DB>,
    proxy: &Proxy,
    id: &str,
) {
    let double = Double::new();
    proxy.lose_next_commit();
    let outcome = transact!(pool, tx => G::record(tx, id, &double))
        .await
        .unwrap();
    assert!(!proxy.is_waiting_for_commit());
    assert_eq!(outcome, Outcome::Duplicate);
    assert_eq!(double.runs(), 1);
    assert_eq!(db.stored(id).await, (1, 1));

    // Without a loop it is an error, and the redelivery finds out.
    let id = &format!("{id}-once");
    let double = Double::new();
    proxy.lose_next_commit();
    let error = transact!(once: pool, tx => G::record(tx, id, &double))
        .await
        .unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
    let outcome = transact!(pool, tx => G::record(tx, id, &double))
        .await
        .unwrap();
    assert_eq!(outcome, Outcome::Duplicate);
    assert_eq!(db.stored(id).await, (1, 1));
}
