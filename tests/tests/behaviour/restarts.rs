//! Servers that refuse connections for a while.

use idempotent_runtime::{Attempts, Outcome, transact};
use idempotent_tests::{Double, Engine, Fresh, Proxy, Recorder, Refusal, Verify};
use sqlx::pool::PoolOptions;
use sqlx::{MySql, Pool, Postgres};

mod postgres {
    #[test]
    #[cfg_attr(not(has_postgres), ignore = "needs Postgres: run `cargo xtask test`")]
    fn a_server_that_comes_back_is_waited_for() {
        idempotent_tests::in_fresh_database::<sqlx::Postgres>(super::on_postgres);
    }
}

mod mariadb {
    #[test]
    #[cfg_attr(not(has_mariadb), ignore = "needs MariaDB: run `cargo xtask test`")]
    fn a_server_that_comes_back_is_waited_for() {
        idempotent_tests::in_fresh_database::<sqlx::MySql>(super::on_mariadb);
    }
}

async fn on_postgres(db: &Fresh<Postgres>) {
    db.prepare().await;
    let proxy = Proxy::start(db.options.get_host(), db.options.get_port()).await;
    let options = db.options.clone().host("127.0.0.1").port(proxy.port());
    let options = options.ssl_mode(sqlx::postgres::PgSslMode::Disable);
    let pool = PoolOptions::new()
        .max_connections(1)
        .connect_lazy_with(options);
    is_waited_for(db, &pool, &proxy, "hangs-up", Refusal::HangsUp).await;
    // sqlx itself waits while a server starts, the first of these.
    for sqlstate in ["57P03", "57P02", "57P01"] {
        is_waited_for(db, &pool, &proxy, sqlstate, Refusal::Says(sqlstate)).await;
    }
}

async fn on_mariadb(db: &Fresh<MySql>) {
    db.prepare().await;
    let proxy = Proxy::start(db.options.get_host(), db.options.get_port()).await;
    let options = db.options.clone().host("127.0.0.1").port(proxy.port());
    let pool = PoolOptions::new()
        .max_connections(1)
        .connect_lazy_with(options);
    is_waited_for(db, &pool, &proxy, "hangs-up", Refusal::HangsUp).await;
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
