//! The COMMIT arrives, its answer does not.

use idempotent_runtime::{Outcome, transact};
use idempotent_tests::{
    Double, Engine, Fresh, Proxy, Recorder, Replayed, ReplayedUnderSavepoint, Savepoint, Verify,
    Wired,
};
use sqlx::Pool;
use sqlx::pool::PoolOptions;

on_servers!(a_lost_answer_to_commit_ends_as_a_duplicate_with_one_effect);

async fn a_lost_answer_to_commit_ends_as_a_duplicate_with_one_effect<DB: Wired>(db: &Fresh<DB>) {
    db.prepare().await;
    let (proxy, options) = db.behind_proxy().await;
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
