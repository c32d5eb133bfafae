//! How the databases run the statements that pruning sends.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use idempotent_runtime::Table;
use idempotent_tests::{Engine, Fresh, Kind};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::pruning::{Rows, fill_table};

on_every_database!(the_statements_that_are_sent_use_an_index);

/// Collects the statements that sqlx sends, also those of SQLite's threads: so it
/// is the process's, and each database has a table of another name.
#[derive(Clone, Default)]
struct Sent(Arc<Mutex<Vec<String>>>);

impl Sent {
    fn collector() -> Self {
        static SENT: OnceLock<Sent> = OnceLock::new();
        let sent = SENT.get_or_init(|| {
            let sent = Self::default();
            tracing::subscriber::set_global_default(sent.clone()).unwrap();
            sent
        });
        sent.clone()
    }

    /// The statements that name a table.
    fn naming(&self, table: &str) -> Vec<String> {
        let mut sent = self.0.lock().unwrap().clone();
        sent.retain(|sql| sql.contains(table));
        sent
    }
}

impl Visit for Sent {
    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "db.statement" {
            self.0.lock().unwrap().push(value.trim().to_owned());
        }
    }
}

impl Subscriber for Sent {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sqlx::query"
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Puts literals in the place of what was bound.
fn bound<DB: Engine>(sql: &str, from: &str) -> String {
    let is_batch = sql.contains("DELETE");
    let rest: &[&str] = match (sql.contains("expires_at IS NULL"), is_batch) {
        (false, false) => &[],
        (false, true) => &["20"],
        (true, false) => &["'old'", "1000"],
        (true, true) if DB::KIND == Kind::MariaDb => &["'old'", "1000", "20"],
        (true, true) => &["20", "'old'", "1000"],
    };
    let mut sql = sql.to_owned();
    for (number, value) in std::iter::once(&from).chain(rest).enumerate() {
        let numbered = number + 1;
        sql = match DB::KIND {
            Kind::Postgres => sql.replace(&format!("${numbered}"), value),
            Kind::MariaDb => sql.replacen('?', value, 1),
            Kind::Sqlite => sql.replace(&format!("?{numbered}"), value),
        };
    }
    sql
}

/// A look and a batch, of expired rows and of old ones, among many others.
async fn the_statements_that_are_sent_use_an_index<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let name = format!("explained_{:?}", DB::KIND).to_lowercase();
    let table = Table::named(name.clone()).unwrap();
    table.migrate(&pool).await.unwrap();
    fill_table(db, &name, Rows("a", 6_000, -100, Some(1_000))).await;
    fill_table(db, &name, Rows("old", 300, -100, None)).await;
    fill_table(db, &name, Rows("other", 6_000, -100, None)).await;
    fill_table(db, &name, Rows("past", 300, -100, Some(-10))).await;
    db.run(&match DB::KIND {
        Kind::Postgres | Kind::Sqlite => format!("ANALYZE {name}"),
        Kind::MariaDb => format!("ANALYZE TABLE {name}"),
    })
    .await;

    let sent = Sent::collector();
    let before = sent.naming(&name).len();
    let pruned = table
        .pruner(&pool)
        .batch(20)
        .pause(Duration::ZERO)
        .older_than("old", Duration::from_secs(1))
        .run();
    assert_eq!(pruned.await.unwrap().rows, 600);
    let mut sent = sent.naming(&name).split_off(before);
    sent.retain(|sql| !sql.contains("has_any_column_privilege"));
    sent.sort();
    sent.dedup();
    assert_eq!(sent.len(), 4, "{sent:#?}");

    // As they were.
    fill_table(db, &name, Rows("old", 300, -100, None)).await;
    fill_table(db, &name, Rows("past", 300, -100, Some(-10))).await;
    let mut conn = pool.acquire().await.unwrap();
    for sql in sent {
        let is_old = sql.contains("expires_at IS NULL");
        let from = match DB::KIND {
            _ if is_old => "'k000100'",
            Kind::Sqlite => "'1'",
            _ => "'2000-01-01'",
        };
        let plan = DB::plan(&mut conn, &bound::<DB>(&sql, from)).await.unwrap();
        println!("{sql}\n{plan}");
        let index = match (DB::KIND, is_old) {
            (Kind::MariaDb, false) => "\"key\": \"expires_at\"".to_owned(),
            (Kind::MariaDb, true) => "\"key\": \"PRIMARY\"".to_owned(),
            (Kind::Postgres, false) => "Index Cond: ((expires_at <= now())".to_owned(),
            (Kind::Postgres, true) => "Index Cond: ((scope = 'old'".to_owned(),
            (Kind::Sqlite, false) => format!("INDEX {name}_expires_at"),
            (Kind::Sqlite, true) => "USING PRIMARY KEY".to_owned(),
        };
        assert!(plan.contains(&index), "{sql}\n{plan}");
        let scan = match DB::KIND {
            Kind::MariaDb => "\"access_type\": \"ALL\"".to_owned(),
            Kind::Postgres => format!("Seq Scan on {name}"),
            Kind::Sqlite => format!("SCAN {name}"),
        };
        // MariaDB reads its own list of a batch from end to end.
        let own = plan.matches("\"table_name\": \"<derived").count();
        assert_eq!(plan.matches(&scan).count(), own, "{sql}\n{plan}");
        let whole_index = "\"access_type\": \"index\"";
        assert!(!plan.contains(whole_index), "{sql}\n{plan}");
    }
}
