//! The tables of the tests.

use idempotent_runtime::migrate;
use idempotent_tests::{Engine, Kind};
use sqlx::Pool;

/// Makes them.
///
/// The rows of an effect have numbers of their own: on Galera two rows without a key of their own
/// that are the same would meet as the same row, and hide that a message ran twice.
pub(crate) async fn prepare<DB: Engine>(pool: &Pool<DB>) {
    migrate(pool).await.expect("the table is made");
    let number = match DB::KIND {
        Kind::MariaDb => "bigint AUTO_INCREMENT",
        Kind::Postgres | Kind::Sqlite => "bigint GENERATED ALWAYS AS IDENTITY",
    };
    let effects =
        format!("CREATE TABLE effects (n {number} PRIMARY KEY, id varchar(300) NOT NULL)");
    let mut conn = pool.acquire().await.expect("the database answers");
    DB::run(&mut conn, &effects)
        .await
        .expect("the table is made");
}

/// How many rows the effect of a message has.
pub(crate) const ROWS: i64 = 3;

/// How often a message had its effect.
///
/// # Panics
///
/// If half an effect is there.
pub async fn effects<DB: Engine>(pool: &Pool<DB>, id: &str) -> i64 {
    let count = format!("SELECT count(*) FROM effects WHERE id = '{id}'");
    let rows = number(pool, &count).await;
    assert_eq!(rows % ROWS, 0, "half an effect of {id}");
    rows / ROWS
}

/// How many keys are stored.
pub async fn keys<DB: Engine>(pool: &Pool<DB>) -> i64 {
    number(pool, "SELECT count(*) FROM processed_messages").await
}

pub(crate) async fn number<DB: Engine>(pool: &Pool<DB>, query: &str) -> i64 {
    let mut conn = pool.acquire().await.expect("the database answers");
    let number = DB::number(&mut conn, query).await;
    number.unwrap_or_else(|error| panic!("{query}: {error}"))
}
