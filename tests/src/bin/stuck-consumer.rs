//! A consumer that never comes out of its handler, for a test to kill.

use idempotent_tests::{Act, Double, Engine, Guarded, Recorder, Savepoint, Verify};
use sqlx::{ConnectOptions, Connection, MySql, Postgres, Sqlite};
use std::io::Write as _;
use std::sync::Arc;
use tokio::sync::{Notify, Semaphore};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, scope, id] = &*arguments else {
        panic!("usage: stuck-consumer <url> <scope> <id>");
    };
    match url.split(':').next() {
        Some("postgres") => consume::<Postgres>(url, scope, id).await,
        Some("mysql") => consume::<MySql>(url, scope, id).await,
        _ => consume::<Sqlite>(url, scope, id).await,
    }
}

async fn consume<DB: Engine>(url: &str, scope: &str, id: &str) {
    let options: <DB::Connection as Connection>::Options = url.parse().expect("a url");
    let mut conn = options.connect().await.expect("a server");
    let mut tx = conn.begin().await.expect("a transaction");
    let here = Arc::new(Notify::new());
    let double = Double::planned([Act::Hold(Arc::clone(&here), Arc::new(Semaphore::new(0)))]);
    let stuck = async {
        if scope == Verify::SCOPE {
            Verify::record(&mut tx, id, &double).await
        } else {
            Savepoint::record(&mut tx, id, &double).await
        }
    };
    let say = async {
        here.notified().await;
        println!("stuck");
        std::io::stdout().flush().expect("somebody listens");
    };
    let (outcome, ()) = tokio::join!(stuck, say);
    panic!("{outcome:?}");
}
