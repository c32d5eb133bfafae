//! `migrate` on databases that others use too, and cut off half-way.

use std::time::Duration;

use idempotent_runtime::{Outcome, Table, migrate, transact};
use idempotent_tests::{CutAt, Double, Engine, Fresh, Kind, Recorder, Verify, at_every_poll};
use sqlx::Postgres;
use sqlx::pool::PoolOptions;

on_every_database!(cut_off_at_every_poll_it_leaves_no_open_transaction);

mod schemas {
    use super::{Fresh, Postgres, with_an_earlier_schema};

    on_postgres!(a_table_that_the_search_path_finds_is_the_table);

    async fn a_table_that_the_search_path_finds_is_the_table(db: &Fresh<Postgres>) {
        with_an_earlier_schema(db).await;
    }
}

/// A second table in the first schema would hide the first one with its keys.
async fn with_an_earlier_schema(db: &Fresh<Postgres>) {
    db.prepare().await;
    db.run("CREATE SCHEMA earlier").await;
    let options = db.options.clone();
    let options = options.options([("search_path", "earlier,public")]);
    let pool = async || {
        PoolOptions::<Postgres>::new()
            .max_connections(1)
            .connect_with(options.clone())
            .await
            .unwrap()
    };
    let double = Double::new();
    let deliver = async || {
        let pool = pool().await;
        let outcome = transact!(&pool, tx => Verify::record(tx, "1", &double)).await;
        pool.close().await;
        outcome.unwrap()
    };
    assert_eq!(deliver().await, Outcome::Processed(()));
    for _ in 0..2 {
        migrate(&pool().await).await.unwrap();
        assert_eq!(deliver().await, Outcome::Duplicate);
    }
    let tables = "SELECT count(*) FROM pg_class WHERE relname = 'processed_messages'";
    assert_eq!(db.number(tables).await, 1);
    assert_eq!(db.stored("1").await, (1, 1));

    // Where there is none, it is made in the first schema, as ever.
    let table = Table::named("inbox").unwrap();
    table.migrate(&pool().await).await.unwrap();
    assert_eq!(db.rows("earlier.inbox").await, 0);
}

async fn cut_off_at_every_poll_it_leaves_no_open_transaction<DB: Engine>(db: &Fresh<DB>) {
    db.prepare().await;
    let mut tables = 0;
    for ping in [true, false] {
        let options = PoolOptions::new()
            .max_connections(1)
            .test_before_acquire(ping);
        let pool = db.pool_with(options).await;
        // Once it makes a table, once it finds one.
        for exists in [false, true] {
            at_every_poll(async |id, polls, moment| {
                let id = format!("{id}-{ping}-{exists}");
                tables += 1;
                let name = match DB::KIND {
                    // It makes the schema too.
                    Kind::Postgres if !exists => format!("schema_{tables}.inbox"),
                    _ => format!("inbox_{tables}"),
                };
                let table = Table::named(name).unwrap();
                if exists {
                    table.migrate(&db.observer).await.unwrap();
                }
                let migrated = CutAt::new(polls, moment, table.migrate(&pool)).await;
                let finished = migrated.transpose().unwrap().is_some();

                let write = format!("INSERT INTO letters (id) VALUES ('{id}')");
                let later = async {
                    let mut conn = pool.acquire().await?;
                    DB::run(&mut conn, &write).await
                };
                let later = tokio::time::timeout(Duration::from_secs(10), later).await;
                later
                    .unwrap_or_else(|_| panic!("{id}: the pool is stuck"))
                    .unwrap();
                let letters = format!("SELECT count(*) FROM letters WHERE id = '{id}'");
                assert_eq!(db.number(&letters).await, 1, "{id}: a later write");
                db.until_idle().await;
                // All of the table is there, or none.
                table.migrate(&pool).await.unwrap();
                finished
            })
            .await;
        }
        pool.close().await;
    }
}
