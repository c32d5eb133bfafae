//! What is told of each decision.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Mutex};

use idempotent_runtime::{Attempts, ManyWriters, idempotent, transact};
use idempotent_tests::{Act, AppError, Double, Engine, Fresh};
use metrics::{Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata};
use metrics::{Recorder, SharedString, Unit};
use sqlx::Transaction;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};

on_every_database!(
    each_decision_is_one_event_with_stable_fields,
    keys_stand_in_debug_events_alone,
    messages_are_counted_and_ages_recorded,
);

#[idempotent(key(id), skip(double), scope = "plain")]
async fn plain<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await
}

#[idempotent(key(id), fingerprint(amount), scope = "pay", replay)]
async fn pay<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    amount: i64,
) -> Result<i64, AppError> {
    let _ = tx;
    Ok(amount)
}

/// Its first run meets an error that may be retried.
#[idempotent(key(id), skip(double), scope = "unlucky")]
async fn unlucky<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await?;
    if double.runs() == 1 {
        let cut = io::Error::from(io::ErrorKind::ConnectionReset);
        return Err(sqlx::Error::Io(cut).into());
    }
    Ok(())
}

#[idempotent(key(id), scope = "busy", busy = "fail")]
async fn busy<DB: Engine + ManyWriters>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
) -> Result<(), AppError> {
    let _ = (tx, id);
    Ok(())
}

#[idempotent(key(id), scope = "lost")]
async fn lost<DB: Engine>(tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), AppError> {
    let _ = id;
    DB::run(tx, "ROLLBACK").await?;
    Ok(())
}

#[idempotent(key(id), each = "id in ids", scope = "batch")]
async fn batch<DB: Engine>(tx: &mut Transaction<'_, DB>, ids: Vec<u32>) -> Result<(), AppError> {
    let _ = (tx, ids);
    Ok(())
}

#[idempotent(key(id), scope = "kept", retain = "7 days")]
async fn kept<DB: Engine>(tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), AppError> {
    let _ = (tx, id);
    Ok(())
}

/// One delivery after the other, with every decision that each database has.
async fn all_decisions<DB: Engine>(db: &Fresh<DB>) {
    let (pool, double) = (db.prepared(1).await, Double::new());
    for _ in 0..2 {
        let _ = transact!(&pool, tx => plain(tx, "1", &double))
            .await
            .unwrap();
    }
    for amount in [10, 10, 99] {
        let _ = transact!(&pool, tx => pay(tx, "2", amount)).await;
    }
    let _ = transact!(&pool, tx => plain(tx, "", &double))
        .await
        .unwrap_err();
    db.run("UPDATE processed_messages SET result = NULL").await;
    let _ = transact!(&pool, tx => pay(tx, "2", 10)).await.unwrap_err();
    let _ = transact!(&pool, tx => batch(tx, vec![1, 2, 1]))
        .await
        .unwrap();
    for _ in 0..2 {
        let _ = transact!(&pool, tx => kept(tx, "5")).await.unwrap();
    }
    let attempts = Attempts::on(&pool).attempts(1);
    let _ = transact!(attempts, tx => lost(tx, "3")).await.unwrap_err();
    let second = Double::new();
    let _ = transact!(&pool, tx => unlucky(tx, "6", &second))
        .await
        .unwrap();
    // A failure of the handler's own is not ours to tell.
    let refusing = Double::planned([Act::Refuse]);
    let _ = transact!(&pool, tx => plain(tx, "4", &refusing))
        .await
        .unwrap_err();
}

/// Collects the events of this crate.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Told>>>);

impl Collector {
    /// Level, scope, decision and names of the fields of each event.
    fn said(&self) -> Vec<String> {
        let told = self.0.lock().unwrap();
        let said = told.iter().map(|(level, fields)| {
            let names: Vec<&str> = fields.keys().map(String::as_str).collect();
            let scope = fields.get("scope").map_or("", String::as_str);
            let decision = &fields["decision"];
            format!("{level} {scope} {decision}: {}", names.join(" "))
        });
        said.collect()
    }
}

type Told = (Level, BTreeMap<String, String>);

struct Fields<'f>(&'f mut BTreeMap<String, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "idempotent_runtime"
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        let level = *event.metadata().level();
        self.0.lock().unwrap().push((level, fields));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

async fn each_decision_is_one_event_with_stable_fields<DB: Engine>(db: &Fresh<DB>) {
    let collector = Collector::default();
    let guard = tracing::subscriber::set_default(collector.clone());
    all_decisions(db).await;
    drop(guard);
    assert_eq!(
        collector.said(),
        [
            "DEBUG plain processed: decision key message scope",
            "DEBUG plain duplicate: decision key message scope",
            "DEBUG pay processed: decision key message scope",
            "DEBUG pay replayed: age decision key message scope",
            "WARN pay key_reused: decision message scope",
            "WARN plain missing_key: decision message scope",
            "WARN pay result_unreadable: decision message scope",
            "DEBUG batch batch: decision duplicates message processed scope",
            "DEBUG kept processed: decision key message scope",
            "DEBUG kept duplicate: age decision key message scope",
            "ERROR lost transaction_lost: decision message scope",
            "DEBUG  retried: decision message",
            "DEBUG unlucky processed: decision key message scope",
        ]
    );
    let age: f64 = collector.0.lock().unwrap()[3].1["age"].parse().unwrap();
    assert!((0.0..60.0).contains(&age), "{age}");
}

async fn keys_stand_in_debug_events_alone<DB: Engine>(db: &Fresh<DB>) {
    let collector = Collector::default();
    let guard = tracing::subscriber::set_default(collector.clone());
    let pool = db.prepared(1).await;
    for amount in [10, 99] {
        let _ = transact!(&pool, tx => pay(tx, "alice@example.org", amount)).await;
    }
    drop(guard);
    for (level, fields) in collector.0.lock().unwrap().iter() {
        let text = format!("{fields:?}");
        assert_eq!(text.contains("alice"), *level == Level::DEBUG, "{text}");
    }
}

/// Sums of counters, and what histograms were given.
#[derive(Clone, Default)]
struct Metrics(Arc<Mutex<BTreeMap<String, Vec<f64>>>>);

struct Metric(Metrics, String);

impl CounterFn for Metric {
    fn increment(&self, value: u64) {
        #[expect(clippy::cast_precision_loss, reason = "small counts")]
        self.record(value as f64);
    }

    fn absolute(&self, _: u64) {}
}

impl HistogramFn for Metric {
    fn record(&self, value: f64) {
        let mut metrics = self.0.0.lock().unwrap();
        metrics.entry(self.1.clone()).or_default().push(value);
    }
}

impl Metrics {
    fn metric(&self, key: &Key) -> Arc<Metric> {
        let labels: Vec<String> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        let name = format!("{} {}", key.name(), labels.join(" "));
        Arc::new(Metric(self.clone(), name))
    }
}

impl Recorder for Metrics {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.metric(key))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.metric(key))
    }
}

async fn messages_are_counted_and_ages_recorded<DB: Engine>(db: &Fresh<DB>) {
    let recorder = Metrics::default();
    let guard = metrics::set_default_local_recorder(&recorder);
    all_decisions(db).await;
    drop(guard);
    let metrics = recorder.0.lock().unwrap();
    let count = |scope: &str, decision: &str| {
        let name = format!("idempotent_messages_total scope={scope} decision={decision}");
        metrics.get(&name).map_or(0.0, |counts| counts.iter().sum())
    };
    for (scope, decision, expected) in [
        ("plain", "processed", 1.0),
        ("plain", "duplicate", 1.0),
        ("pay", "processed", 1.0),
        ("pay", "replayed", 1.0),
        ("pay", "key_reused", 1.0),
        ("pay", "result_unreadable", 1.0),
        ("plain", "missing_key", 1.0),
        ("batch", "processed", 2.0),
        ("batch", "duplicate", 1.0),
        ("kept", "duplicate", 1.0),
        ("lost", "transaction_lost", 1.0),
        ("unlucky", "processed", 1.0),
    ] {
        let counted: f64 = count(scope, decision);
        assert!(
            (counted - expected).abs() < 0.1,
            "{scope} {decision}: {metrics:?}"
        );
    }
    assert_eq!(metrics["idempotent_retries_total "], [1.0]);
    for scope in ["pay", "kept"] {
        let ages = &metrics[&format!("idempotent_duplicate_age_seconds scope={scope}")];
        assert_eq!(ages.len(), 1, "{metrics:?}");
        assert!((0.0..60.0).contains(&ages[0]), "{metrics:?}");
    }
}

mod servers {
    use super::*;

    on_servers!(a_message_in_flight_is_told);

    async fn a_message_in_flight_is_told<DB: Engine + ManyWriters>(db: &Fresh<DB>) {
        let pool = db.prepared(2).await;
        let (collector, recorder) = (Collector::default(), Metrics::default());
        let (mut first, mut second) = (pool.begin().await.unwrap(), pool.begin().await.unwrap());
        let _ = busy(&mut first, "1").await.unwrap();
        let guards = (
            tracing::subscriber::set_default(collector.clone()),
            metrics::set_default_local_recorder(&recorder),
        );
        busy(&mut second, "1").await.unwrap_err();
        drop(guards);
        assert_eq!(
            collector.said(),
            ["DEBUG busy in_flight: decision key message scope"]
        );
        let metrics = recorder.0.lock().unwrap();
        assert_eq!(
            metrics["idempotent_messages_total scope=busy decision=in_flight"],
            [1.0]
        );
    }
}
