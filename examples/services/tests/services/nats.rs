//! The notification service on NATS `JetStream`.

use std::process::Stdio;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::{self, AckKind, Context, stream};
use futures_util::StreamExt as _;
use idempotent_services::notify::{Channel, TransferCompleted};

use crate::database;
use crate::proxy::Proxy;
use crate::running::{Fresh, Running, counts, in_fresh_database, server, until};

const READY: &str = "waiting for";
const STORED: &str = "SELECT count(*) FROM notifications";

const SOON: Duration = Duration::from_secs(10);

macro_rules! tests {
    ($($test:ident),+ $(,)?) => {
        $(#[test]
        #[cfg_attr(
            not(all(has_postgres, has_nats)),
            ignore = "needs Postgres and NATS: run `cargo xtask test`"
        )]
        fn $test() {
            in_fresh_database(async |db| {
                let nats = Nats::connect(db).await;
                scenarios::$test(db, &nats).await;
                nats.forget().await;
            });
        })+
    };
}

tests!(
    each_notice_is_stored_once_though_each_event_comes_twice,
    in_batches_too,
    what_can_never_be_handled_is_a_dead_letter,
    what_fails_comes_again_until_it_succeeds,
    what_always_fails_is_a_dead_letter,
    what_crashed_the_service_each_time_is_a_dead_letter,
    a_dead_letter_keeps_its_headers,
    a_dead_letter_that_is_too_large_is_kept_without_its_body,
    killed_in_the_middle_it_goes_on_where_it_was,
    while_the_database_is_down_it_keeps_what_it_has,
    it_stops_while_the_database_is_down,
    it_stops_while_nats_is_down,
    two_processes_share_the_notices,
);

/// The test's own client.
struct Nats<'d> {
    name: &'d str,
    jetstream: Context,
}

impl<'d> Nats<'d> {
    async fn connect(db: &'d Fresh) -> Self {
        let client = async_nats::connect(server("NATS")).await.unwrap();
        Self {
            name: &db.name,
            jetstream: jetstream::new(client),
        }
    }

    /// As the service does it, but what is not acknowledged comes again sooner.
    async fn declare(&self, ack_wait: Duration) {
        let stream = stream::Config {
            name: self.name.to_owned(),
            subjects: vec![format!("{}.completed", self.name)],
            ..stream::Config::default()
        };
        let stream = self.jetstream.create_stream(stream).await.unwrap();
        for durable in self.consumers() {
            let config = pull::Config {
                durable_name: Some(durable),
                ack_policy: AckPolicy::Explicit,
                ack_wait,
                ..pull::Config::default()
            };
            stream.create_consumer(config).await.unwrap();
        }
    }

    fn consumers(&self) -> [String; 2] {
        Channel::ALL.map(|channel| format!("{}-{}", self.name, channel.name().to_lowercase()))
    }

    async fn publish(&self, bodies: &[Vec<u8>]) {
        for body in bodies {
            self.publish_with(HeaderMap::new(), body.clone()).await;
        }
    }

    async fn publish_with(&self, headers: HeaderMap, body: Vec<u8>) {
        let subject = format!("{}.completed", self.name);
        let stored = self
            .jetstream
            .publish_with_headers(subject, headers, body.into());
        stored.await.unwrap().await.unwrap();
    }

    async fn consumer(&self, durable: String) -> PullConsumer {
        self.jetstream
            .get_consumer_from_stream(durable, self.name)
            .await
            .unwrap()
    }

    /// Messages that were not given out yet, and those that were and are not acknowledged.
    async fn pending(&self) -> u64 {
        let mut pending = 0;
        for durable in self.consumers() {
            let mut consumer = self.consumer(durable).await;
            let info = consumer.info().await.unwrap();
            pending += info.num_pending + u64::try_from(info.num_ack_pending).unwrap();
        }
        pending
    }

    async fn until_acknowledged(&self) {
        until("all is acknowledged", async || self.pending().await == 0).await;
    }

    /// The dead letters: subject, body, and why.
    async fn dead_letters(&self) -> Vec<(String, Vec<u8>, String)> {
        let dead = format!("{}-dead", self.name);
        let dead = self.jetstream.get_stream(dead).await.unwrap();
        let mut letters = Vec::new();
        for number in 1..=dead.cached_info().state.messages {
            let letter = self.raw_dead_letter(number).await;
            let subject = letter.subject.rsplit('.').next().unwrap().to_owned();
            let why = letter.headers.get("Why").unwrap().to_string();
            letters.push((subject, letter.payload.to_vec(), why));
        }
        letters.sort();
        letters
    }

    async fn raw_dead_letter(&self, number: u64) -> StreamMessage {
        let dead = format!("{}-dead", self.name);
        let dead = self.jetstream.get_stream(dead).await.unwrap();
        dead.get_raw_message(number).await.unwrap()
    }

    async fn forget(&self) {
        for stream in [self.name.to_owned(), format!("{}-dead", self.name)] {
            self.jetstream.delete_stream(stream).await.unwrap();
        }
    }
}

fn service(db: &Fresh, args: &[&str]) -> Running {
    let mut command = db.program(env!("CARGO_BIN_EXE_nats"), &server("NATS"));
    command.args(args);
    Running::start(command, READY)
}

fn complaining(db: &Fresh) -> Running {
    let mut command = db.program(env!("CARGO_BIN_EXE_nats"), &server("NATS"));
    command.stderr(Stdio::piped());
    Running::start(command, READY)
}

fn event(cents: i64) -> Vec<u8> {
    let event = TransferCompleted {
        cents,
        ..TransferCompleted::sample(1)
    };
    serde_json::to_vec(&event).unwrap()
}

mod scenarios {
    use super::*;

    pub(super) async fn each_notice_is_stored_once_though_each_event_comes_twice(
        db: &Fresh,
        nats: &Nats<'_>,
    ) {
        twice(db, nats, "1").await;
    }

    pub(super) async fn in_batches_too(db: &Fresh, nats: &Nats<'_>) {
        twice(db, nats, "16").await;
    }

    async fn twice(db: &Fresh, nats: &Nats<'_>, batch: &str) {
        let service = service(db, &["--publish", "20", "--batch", batch]);
        nats.until_acknowledged().await;
        let last = service.stop();
        assert_eq!(last, "processed=40 duplicates=40 redelivered=0 rejected=0");
        assert_eq!(db.number(STORED).await, 40);
        assert_eq!(nats.pending().await, 0);
        assert_eq!(nats.dead_letters().await, []);
    }

    pub(super) async fn what_can_never_be_handled_is_a_dead_letter(db: &Fresh, nats: &Nats<'_>) {
        nats.declare(Duration::from_secs(1)).await;
        let unread = b"{\"id\":".to_vec();
        nats.publish(&[unread.clone(), event(0), event(100)]).await;
        let service = service(db, &["--batch", "10"]);
        nats.until_acknowledged().await;
        let last = service.stop();
        assert_eq!(last, "processed=2 duplicates=0 redelivered=0 rejected=4");
        assert_eq!(db.number(STORED).await, 2);
        let letters = nats.dead_letters().await;
        let letters = letters.iter().map(|(to, body, _)| (&**to, &**body));
        assert_eq!(
            letters.collect::<Vec<_>>(),
            [
                ("email", &*unread),
                ("email", &*event(0)),
                ("push", &*unread),
                ("push", &*event(0)),
            ]
        );
    }

    pub(super) async fn what_fails_comes_again_until_it_succeeds(db: &Fresh, nats: &Nats<'_>) {
        nats.declare(Duration::from_secs(1)).await;
        let service = service(db, &["--batch", "10"]);
        db.run("ALTER TABLE notifications RENAME TO hidden").await;
        nats.publish(&[event(100)]).await;
        service.says("again");
        db.run("ALTER TABLE hidden RENAME TO notifications").await;
        nats.until_acknowledged().await;
        let last = service.stop();
        assert!(last.starts_with("processed=2 duplicates=0 "), "{last}");
        assert!(last.ends_with(" rejected=0"), "{last}");
        assert_eq!(db.number(STORED).await, 2);
    }

    pub(super) async fn what_always_fails_is_a_dead_letter(db: &Fresh, nats: &Nats<'_>) {
        let service = service(db, &["--batch", "10"]);
        db.run("ALTER TABLE notifications ADD CHECK (cents <> 200)")
            .await;
        nats.publish(&[event(200)]).await;
        nats.publish(&[serde_json::to_vec(&TransferCompleted::sample(2)).unwrap()])
            .await;
        nats.until_acknowledged().await;
        let last = service.stop();
        assert_eq!(last, "processed=2 duplicates=0 redelivered=10 rejected=2");
        for (_, body, why) in nats.dead_letters().await {
            assert_eq!(body, event(200));
            assert!(why.contains("it was delivered 5 times"), "{why}");
        }
    }

    pub(super) async fn what_crashed_the_service_each_time_is_a_dead_letter(
        db: &Fresh,
        nats: &Nats<'_>,
    ) {
        nats.declare(Duration::from_secs(1)).await;
        nats.publish(&[event(100)]).await;
        for durable in nats.consumers() {
            let consumer = nats.consumer(durable).await;
            for _ in 0..5 {
                let fetch = consumer.fetch().max_messages(1).expires(SOON);
                let mut deliveries = fetch.messages().await.unwrap();
                let delivery = deliveries.next().await.unwrap().unwrap();
                delivery.ack_with(AckKind::Nak(None)).await.unwrap();
            }
        }
        let service = service(db, &[]);
        nats.until_acknowledged().await;
        let last = service.stop();
        assert_eq!(last, "processed=0 duplicates=0 redelivered=0 rejected=2");
        assert_eq!(nats.dead_letters().await.len(), 2);
    }

    pub(super) async fn a_dead_letter_keeps_its_headers(db: &Fresh, nats: &Nats<'_>) {
        nats.declare(Duration::from_secs(1)).await;
        let mut headers = HeaderMap::new();
        headers.insert("Traceparent", "00-1-2-01");
        headers.insert("Nats-Msg-Id", "once");
        nats.publish_with(headers, event(0)).await;
        let service = service(db, &[]);
        nats.until_acknowledged().await;
        service.stop();
        for number in 1..=2 {
            let letter = nats.raw_dead_letter(number).await;
            let header = |name: &str| letter.headers.get(name).map(ToString::to_string);
            assert_eq!(header("Traceparent").as_deref(), Some("00-1-2-01"));
            assert_eq!(header("Nats-Msg-Id"), None);
            assert_eq!(header("Origin"), Some(format!("{} 1", nats.name)));
        }
    }

    pub(super) async fn a_dead_letter_that_is_too_large_is_kept_without_its_body(
        db: &Fresh,
        nats: &Nats<'_>,
    ) {
        nats.declare(Duration::from_secs(1)).await;
        let largest = vec![b' '; nats.jetstream.client().max_payload()];
        nats.publish(&[largest]).await;
        let service = service(db, &[]);
        nats.until_acknowledged().await;
        let last = service.stop();
        assert_eq!(last, "processed=0 duplicates=0 redelivered=0 rejected=2");
        let letters = nats.dead_letters().await;
        let bodies: Vec<_> = letters.iter().map(|(_, body, _)| body.len()).collect();
        assert_eq!(bodies, [0, 0]);
    }

    pub(super) async fn killed_in_the_middle_it_goes_on_where_it_was(db: &Fresh, nats: &Nats<'_>) {
        nats.declare(Duration::from_secs(1)).await;
        service(db, &[]).stop();
        let held = database::hold_event(db, "transfer-100").await;
        let killed = service(db, &["--publish", "200"]);
        database::until_wait(db, 2).await;
        killed.kill();
        held.rollback().await.unwrap();
        db.until_idle().await;
        assert_eq!(db.number(STORED).await, 2 * 99);
        let service = service(db, &["--batch", "50"]);
        nats.until_acknowledged().await;
        assert_eq!(db.number(STORED).await, 400);
        let last = service.stop();
        assert!(last.starts_with("processed=202 "), "{last}");
        assert!(last.ends_with(" redelivered=0 rejected=0"), "{last}");
    }

    /// For longer than `ack_wait`: nobody else gets it, and nothing is counted.
    pub(super) async fn while_the_database_is_down_it_keeps_what_it_has(
        db: &Fresh,
        nats: &Nats<'_>,
    ) {
        nats.declare(Duration::from_secs(3)).await;
        let service = complaining(db);
        database::goes_down(db).await;
        nats.publish(&[event(100)]).await;
        // A second of each channel.
        for _ in 0..2 * 7 {
            service.complains("the database is not up");
        }
        for durable in nats.consumers() {
            let other = nats.consumer(durable).await;
            let mut others = other.fetch().max_messages(1).messages().await.unwrap();
            assert!(others.next().await.is_none());
        }
        database::comes_back(db).await;
        nats.until_acknowledged().await;
        let last = service.stop();
        assert_eq!(last, "processed=2 duplicates=0 redelivered=0 rejected=0");
    }

    pub(super) async fn it_stops_while_the_database_is_down(db: &Fresh, nats: &Nats<'_>) {
        nats.declare(Duration::from_secs(1)).await;
        let service = complaining(db);
        database::goes_down(db).await;
        nats.publish(&[event(100)]).await;
        service.complains("the database is not up");
        let last = service.stop();
        assert_eq!(last, "processed=0 duplicates=0 redelivered=0 rejected=0");
        database::comes_back(db).await;
        let next = self::service(db, &[]);
        nats.until_acknowledged().await;
        let last = next.stop();
        assert_eq!(last, "processed=2 duplicates=0 redelivered=0 rejected=0");
    }

    pub(super) async fn it_stops_while_nats_is_down(db: &Fresh, _: &Nats<'_>) {
        let nats = Proxy::to(&server("NATS")).await;
        let command = db.program(env!("CARGO_BIN_EXE_nats"), &nats.url);
        let service = Running::start(command, READY);
        nats.goes_down();
        let last = service.stop();
        assert_eq!(last, "processed=0 duplicates=0 redelivered=0 rejected=0");
    }

    /// Each is held up with notices of both channels, until the other is, too.
    pub(super) async fn two_processes_share_the_notices(db: &Fresh, nats: &Nats<'_>) {
        let services = [(); 2].map(|()| service(db, &["--batch", "4"]));
        let held = database::hold(db, "LOCK TABLE notifications IN SHARE MODE").await;
        let events = (1..=100).flat_map(|number| [number, number]);
        let events = events.map(|number| serde_json::to_vec(&TransferCompleted::sample(number)));
        nats.publish(&events.collect::<Result<Vec<_>, _>>().unwrap())
            .await;
        database::until_wait(db, 4).await;
        held.rollback().await.unwrap();
        nats.until_acknowledged().await;
        let [first, second] = services.map(|service| counts(&service.stop()));
        assert!(
            first.processed > 0 && second.processed > 0,
            "{first:?} {second:?}"
        );
        assert_eq!(first.processed + second.processed, 200);
        assert_eq!(first.duplicates + second.duplicates, 200);
        assert_eq!(db.number(STORED).await, 200);
    }
}
