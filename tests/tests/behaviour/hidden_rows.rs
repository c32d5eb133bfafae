//! A row that its database shows to nobody who handles messages.

use std::time::Duration;

use idempotent_runtime::transact;
use idempotent_tests::{AppError, Double, Engine, Fresh, Recorder, Replayed};
use sqlx::Postgres;
use sqlx::pool::PoolOptions;

on_postgres!(a_duplicate_whose_row_cannot_be_read_is_an_error);

async fn a_duplicate_whose_row_cannot_be_read_is_an_error(db: &Fresh<Postgres>) {
    let (owner, double) = (db.prepared(1).await, Double::new());
    let _ = transact!(&owner, tx => Replayed::record(tx, "1", &double))
        .await
        .unwrap();
    db.run(
        "ALTER TABLE processed_messages ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY claims ON processed_messages FOR INSERT WITH CHECK (true); \
         CREATE POLICY reads ON processed_messages FOR SELECT USING (key <> '1')",
    )
    .await;
    let role = Postgres::create_role(&db.options, "SELECT, INSERT, UPDATE, DELETE")
        .await
        .unwrap();
    let pool = PoolOptions::<Postgres>::new()
        .connect_with(role)
        .await
        .unwrap();
    let again = transact!(&pool, tx => Replayed::record(tx, "1", &double));
    let error = tokio::time::timeout(Duration::from_mins(1), again)
        .await
        .expect("it ends")
        .unwrap_err();
    let AppError::Idempotent(error) = error else {
        panic!("{error:?}");
    };
    assert!(error.to_string().contains("row-level security"), "{error}");
    assert_eq!(double.runs(), 1);
}
