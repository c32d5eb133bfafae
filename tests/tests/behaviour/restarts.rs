//! Servers that refuse connections for a while.

use idempotent_runtime::{Attempts, Outcome, migrate, transact};
use idempotent_tests::{Double, Engine, Fresh, Kind, Proxy, Recorder, Refusal, Verify, Wired};
use sqlx::Pool;
use sqlx::pool::PoolOptions;

on_servers!(
    a_server_that_comes_back_is_waited_for,
    the_table_is_made_on_a_server_that_comes_back,
);

async fn a_server_that_comes_back_is_waited_for<DB: Wired>(db: &Fresh<DB>) {
    db.prepare().await;
    let (proxy, options) = db.behind_proxy().await;
    let pool = PoolOptions::new()
        .max_connections(1)
        .connect_lazy_with(options);
    is_waited_for(db, &pool, &proxy, "hangs-up", Refusal::HangsUp).await;
    if DB::KIND == Kind::Postgres {
        // sqlx itself waits while a server starts, the first of these.
        for sqlstate in ["57P03", "57P02", "57P01"] {
            is_waited_for(db, &pool, &proxy, sqlstate, Refusal::Says(sqlstate)).await;
        }
    }
}

async fn the_table_is_made_on_a_server_that_comes_back<DB: Wired>(db: &Fresh<DB>) {
    let (proxy, options) = db.behind_proxy().await;
    let pool = PoolOptions::<DB>::new()
        .max_connections(1)
        .connect_lazy_with(options);
    proxy.refuse_next([Refusal::HangsUp; 2]);
    migrate(&pool).await.unwrap();
    assert_eq!(proxy.refusals_left(), 0);
    assert_eq!(db.rows("processed_messages").await, 0);
}

/// Two refusals take two of three attempts; nothing is run in them.
async fn is_waited_for<DB: Engine>(
    db: &Fresh<DB>,
    pool: &Pool<DB>,
    proxy: &Proxy,
    id: &str,
    refusal: Refusal,
) {
    let double = Double::new();
    proxy.refuse_next([refusal; 2]);
    let attempts = Attempts::on(pool).attempts(3);
    let outcome = transact!(attempts, tx => Verify::record(tx, id, &double)).await;
    assert!(
        matches!(outcome, Ok(Outcome::Processed(()))),
        "{id}: {outcome:?}"
    );
    assert_eq!(proxy.refusals_left(), 0, "{id}");
    assert_eq!(double.runs(), 1, "{id}");
    assert_eq!(db.stored(id).await, (1, 1), "{id}");
    // The next one connects again.
    pool.acquire().await.unwrap().close().await.unwrap();
}
