//! The notification service on RabbitMQ, and the outbox that feeds it.

use std::process::Stdio;

use idempotent_runtime::{forget, lookup};
use idempotent_services::notify::{Channel, TransferCompleted};
use idempotent_services::rabbit;
use lapin::options::{BasicAckOptions, BasicGetOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties};

use crate::database;
use crate::proxy::Proxy;
use crate::running::{Fresh, Running, in_fresh_database, server, until};

const READY: &str = "waiting for";
const STORED: &str = "SELECT count(*) FROM notifications";

macro_rules! tests {
    ($($test:ident),+ $(,)?) => {
        $(#[test]
        #[cfg_attr(
            not(all(has_postgres, has_rabbitmq)),
            ignore = "needs Postgres and RabbitMQ: run `cargo xtask test`"
        )]
        fn $test() {
            in_fresh_database(async |db| {
                let rabbit = Rabbit::connect(db).await;
                scenarios::$test(db, &rabbit).await;
                rabbit.forget().await;
            });
        })+
    };
}

tests!(
    each_notice_is_stored_once_though_each_event_comes_twice,
    a_coarse_key_is_shown_to_lose_a_notice_of_each_event,
    in_batches_too,
    what_can_never_be_handled_is_a_dead_letter,
    what_fails_comes_again_until_it_succeeds,
    what_always_fails_is_a_dead_letter,
    what_was_stored_and_has_lost_its_key_is_a_dead_letter,
    what_no_queue_takes_is_not_published,
    killed_in_the_middle_it_goes_on_where_it_was,
    while_the_database_is_down_nothing_is_given_up,
    while_the_database_can_only_be_read_nothing_is_given_up,
    it_stops_while_the_database_is_down,
    a_relay_stops_while_rabbitmq_does_not_answer,
    from_an_outbox_whose_relay_crashes,
);

/// The test's own connection.
struct Rabbit<'d> {
    name: &'d str,
    channel: lapin::Channel,
}

impl<'d> Rabbit<'d> {
    async fn connect(db: &'d Fresh) -> Self {
        let url = server("RABBITMQ");
        let connection = Connection::connect(&url, ConnectionProperties::default()).await;
        let channel = connection.unwrap().create_channel().await.unwrap();
        rabbit::declare(&channel, &db.name).await.unwrap();
        Self {
            name: &db.name,
            channel,
        }
    }

    async fn publish(&self, bodies: &[Vec<u8>]) {
        rabbit::publish(&self.channel, self.name, bodies)
            .await
            .unwrap();
    }

    /// Messages that nobody has got yet.
    async fn ready(&self, queue: &str) -> u32 {
        let passive = QueueDeclareOptions {
            passive: true,
            durable: true,
            ..QueueDeclareOptions::default()
        };
        let queue = self
            .channel
            .queue_declare(queue.into(), passive, FieldTable::default())
            .await
            .unwrap();
        queue.message_count()
    }

    /// Takes a dead letter.
    async fn dead_letter(&self) -> Option<Vec<u8>> {
        let dead = format!("{}.dead", self.name);
        let letter = self
            .channel
            .basic_get(dead.as_str().into(), BasicGetOptions::default())
            .await
            .unwrap()?;
        letter.ack(BasicAckOptions::default()).await.unwrap();
        Some(letter.data.clone())
    }

    fn queues(&self) -> [String; 2] {
        Channel::ALL.map(|channel| rabbit::queue(self.name, channel).to_string())
    }

    async fn delete(&self, queue: &str) {
        self.channel
            .queue_delete(queue.into(), QueueDeleteOptions::default())
            .await
            .unwrap();
    }

    async fn forget(&self) {
        let dead = format!("{}.dead", self.name);
        for queue in self.queues().into_iter().chain([dead]) {
            self.delete(&queue).await;
        }
        self.channel
            .exchange_delete(
                self.name.into(),
                lapin::options::ExchangeDeleteOptions::default(),
            )
            .await
            .unwrap();
    }
}

fn service(db: &Fresh, args: &[&str]) -> Running {
    let mut command = db.program(env!("CARGO_BIN_EXE_rabbitmq"), &server("RABBITMQ"));
    command.args(args);
    Running::start(command, READY)
}

fn body(event: &TransferCompleted) -> Vec<u8> {
    serde_json::to_vec(event).unwrap()
}

/// The last message that is published is the last that is handled.
async fn all_is_handled(db: &Fresh, rabbit: &Rabbit<'_>) {
    let last = TransferCompleted {
        id: "last".to_owned(),
        ..TransferCompleted::sample(1)
    };
    rabbit.publish(&[body(&last)]).await;
    let stored = "SELECT count(*) FROM notifications WHERE event_id = 'last'";
    until("the last is stored", async || db.number(stored).await == 2).await;
}

/// Nothing comes back when the service has stopped: another gets what is published then, and no more.
async fn everything_is_acknowledged(db: &Fresh, rabbit: &Rabbit<'_>) {
    let service = service(db, &[]);
    let marker = TransferCompleted {
        id: "marker".to_owned(),
        ..TransferCompleted::sample(1)
    };
    rabbit.publish(&[body(&marker)]).await;
    let stored = "SELECT count(*) FROM notifications WHERE event_id = 'marker'";
    until("the marker is stored", async || {
        db.number(stored).await == 2
    })
    .await;
    assert_eq!(
        service.stop(),
        "processed=2 duplicates=0 redelivered=0 rejected=0"
    );
    for queue in rabbit.queues() {
        assert_eq!(rabbit.ready(&queue).await, 0, "{queue}");
    }
}

fn complaining(db: &Fresh) -> Running {
    let mut command = db.program(env!("CARGO_BIN_EXE_rabbitmq"), &server("RABBITMQ"));
    command.stderr(Stdio::piped());
    Running::start(command, READY)
}

mod scenarios {
    use super::*;

    pub(super) async fn each_notice_is_stored_once_though_each_event_comes_twice(
        db: &Fresh,
        rabbit: &Rabbit<'_>,
    ) {
        twice(db, rabbit, "1").await;
    }

    pub(super) async fn a_coarse_key_is_shown_to_lose_a_notice_of_each_event(
        db: &Fresh,
        rabbit: &Rabbit<'_>,
    ) {
        let mut command = db.program(env!("CARGO_BIN_EXE_rabbitmq"), &server("RABBITMQ"));
        command.args(["--publish", "1"]);
        let sent = "with the key `event.id` alone, EMAIL is sent";
        let service = Running::start(command, sent);
        service
            .says("with the key `event.id` alone, PUSH is taken for a duplicate, and never sent");
        service.says(READY);
        all_is_handled(db, rabbit).await;
        service.stop();
        assert_eq!(
            db.number(STORED).await,
            4,
            "and with the right key, it is sent"
        );
    }

    pub(super) async fn in_batches_too(db: &Fresh, rabbit: &Rabbit<'_>) {
        twice(db, rabbit, "16").await;
    }

    async fn twice(db: &Fresh, rabbit: &Rabbit<'_>, batch: &str) {
        let service = service(db, &["--publish", "20", "--batch", batch]);
        all_is_handled(db, rabbit).await;
        let last = service.stop();
        assert_eq!(last, "processed=42 duplicates=40 redelivered=0 rejected=0");
        assert_eq!(
            db.number("SELECT count(DISTINCT event_id) FROM notifications")
                .await,
            21,
            "with the key `event.id` alone, half of the notices would have been swallowed"
        );
        everything_is_acknowledged(db, rabbit).await;
    }

    pub(super) async fn what_can_never_be_handled_is_a_dead_letter(
        db: &Fresh,
        rabbit: &Rabbit<'_>,
    ) {
        let refused = body(&TransferCompleted {
            cents: 0,
            ..TransferCompleted::sample(1)
        });
        let unread = b"{\"id\":".to_vec();
        let right = body(&TransferCompleted::sample(2));
        rabbit
            .publish(&[refused.clone(), unread.clone(), right])
            .await;
        let service = service(db, &["--batch", "10"]);
        until("the right one is stored", async || {
            db.number(STORED).await == 2
        })
        .await;
        let mut letters = Vec::new();
        until("the others are dead letters", async || {
            letters.extend(rabbit.dead_letter().await);
            letters.len() == 4
        })
        .await;
        letters.sort();
        letters.dedup();
        assert_eq!(letters, [unread, refused]);
        let last = service.stop();
        assert_eq!(last, "processed=2 duplicates=0 redelivered=0 rejected=4");
        everything_is_acknowledged(db, rabbit).await;
    }

    pub(super) async fn what_fails_comes_again_until_it_succeeds(db: &Fresh, rabbit: &Rabbit<'_>) {
        let service = service(db, &["--batch", "10"]);
        db.run("ALTER TABLE notifications RENAME TO hidden").await;
        rabbit.publish(&[body(&TransferCompleted::sample(1))]).await;
        service.says("again");
        db.run("ALTER TABLE hidden RENAME TO notifications").await;
        until("it is stored", async || db.number(STORED).await == 2).await;
        let last = service.stop();
        assert!(last.starts_with("processed=2 duplicates=0 "), "{last}");
        assert!(last.ends_with(" rejected=0"), "{last}");
        everything_is_acknowledged(db, rabbit).await;
        assert_eq!(rabbit.dead_letter().await, None);
    }

    /// Both of its notices, after the last delivery that the queue allows.
    pub(super) async fn what_always_fails_is_a_dead_letter(db: &Fresh, rabbit: &Rabbit<'_>) {
        let service = service(db, &["--batch", "10"]);
        db.run("ALTER TABLE notifications ADD CHECK (cents <> 200)")
            .await;
        let refused = TransferCompleted {
            cents: 200,
            ..TransferCompleted::sample(1)
        };
        rabbit
            .publish(&[body(&refused), body(&TransferCompleted::sample(2))])
            .await;
        let mut letters = Vec::new();
        until("it is a dead letter", async || {
            letters.extend(rabbit.dead_letter().await);
            letters.len() == 2
        })
        .await;
        assert_eq!(letters, [body(&refused), body(&refused)]);
        let redelivered = 2 * (rabbit::DELIVERIES + 1);
        assert_eq!(
            service.stop(),
            format!("processed=2 duplicates=0 redelivered={redelivered} rejected=0")
        );
        everything_is_acknowledged(db, rabbit).await;
    }

    /// The unique key of the table holds, and no redelivery is of use.
    pub(super) async fn what_was_stored_and_has_lost_its_key_is_a_dead_letter(
        db: &Fresh,
        rabbit: &Rabbit<'_>,
    ) {
        let service = service(db, &[]);
        let event = TransferCompleted::sample(1);
        rabbit.publish(&[body(&event)]).await;
        until("it is stored", async || db.number(STORED).await == 2).await;
        let key = "transfer-1/EMAIL";
        assert!(lookup(&db.pool, "notify", key).await.unwrap().is_some());
        assert!(forget(&db.pool, "notify", key).await.unwrap());
        rabbit.publish(&[body(&event)]).await;
        let said = service.says("rejected");
        assert!(said.contains("it was stored before"), "{said}");
        all_is_handled(db, rabbit).await;
        let mut letter = None;
        until("it is a dead letter", async || {
            letter = rabbit.dead_letter().await;
            letter.is_some()
        })
        .await;
        assert_eq!(letter, Some(body(&event)));
        let last = service.stop();
        assert_eq!(last, "processed=4 duplicates=1 redelivered=0 rejected=1");
        assert_eq!(db.number(STORED).await, 4);
        everything_is_acknowledged(db, rabbit).await;
    }

    pub(super) async fn what_no_queue_takes_is_not_published(_: &Fresh, rabbit: &Rabbit<'_>) {
        for queue in rabbit.queues() {
            rabbit.delete(&queue).await;
        }
        let event = body(&TransferCompleted::sample(1));
        let refused = rabbit::publish(&rabbit.channel, rabbit.name, &[event]).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("no queue for a message"), "{refused}");
    }

    pub(super) async fn killed_in_the_middle_it_goes_on_where_it_was(
        db: &Fresh,
        rabbit: &Rabbit<'_>,
    ) {
        service(db, &[]).stop();
        let held = database::hold_event(db, "transfer-100").await;
        let killed = service(db, &["--publish", "200"]);
        database::until_one_waits(db).await;
        killed.kill();
        held.rollback().await.unwrap();
        db.until_idle().await;
        let before = db.number(STORED).await;
        assert!((99..400).contains(&before), "{before}");
        let service = service(db, &["--batch", "50"]);
        until("all are stored", async || db.number(STORED).await == 400).await;
        all_is_handled(db, rabbit).await;
        let last = service.stop();
        assert!(
            last.starts_with(&format!("processed={} ", 402 - before)),
            "{before} and then {last}"
        );
        everything_is_acknowledged(db, rabbit).await;
    }

    pub(super) async fn while_the_database_is_down_nothing_is_given_up(
        db: &Fresh,
        rabbit: &Rabbit<'_>,
    ) {
        let service = complaining(db);
        database::goes_down(db).await;
        through_an_outage(db, rabbit, &service).await;
        nothing_is_given_up(db, rabbit, service).await;
    }

    /// As after a failover to a standby: it answers, and nothing can be stored.
    pub(super) async fn while_the_database_can_only_be_read_nothing_is_given_up(
        db: &Fresh,
        rabbit: &Rabbit<'_>,
    ) {
        let service = complaining(db);
        database::can_only_be_read(db).await;
        through_an_outage(db, rabbit, &service).await;
        database::end_sessions(db).await;
        nothing_is_given_up(db, rabbit, service).await;
    }

    async fn through_an_outage(db: &Fresh, rabbit: &Rabbit<'_>, service: &Running) {
        let events: Vec<_> = (1..=10).map(TransferCompleted::sample).collect();
        rabbit
            .publish(&events.iter().map(body).collect::<Vec<_>>())
            .await;
        // More often than a message may be delivered.
        for _ in 0..=rabbit::DELIVERIES {
            service.complains("the database is not up");
        }
        database::comes_back(db).await;
    }

    async fn nothing_is_given_up(db: &Fresh, rabbit: &Rabbit<'_>, service: Running) {
        until("all are stored", async || db.number(STORED).await == 20).await;
        let last = service.stop();
        assert_eq!(last, "processed=20 duplicates=0 redelivered=0 rejected=0");
        everything_is_acknowledged(db, rabbit).await;
        assert_eq!(rabbit.dead_letter().await, None);
    }

    pub(super) async fn it_stops_while_the_database_is_down(db: &Fresh, rabbit: &Rabbit<'_>) {
        let service = complaining(db);
        database::goes_down(db).await;
        rabbit.publish(&[body(&TransferCompleted::sample(1))]).await;
        service.complains("the database is not up");
        assert_eq!(
            service.stop(),
            "processed=0 duplicates=0 redelivered=0 rejected=0"
        );
        database::comes_back(db).await;
        let next = self::service(db, &[]);
        until("it is stored", async || db.number(STORED).await == 2).await;
        next.stop();
    }

    pub(super) async fn a_relay_stops_while_rabbitmq_does_not_answer(db: &Fresh, _: &Rabbit<'_>) {
        let rabbit = Proxy::to(&server("RABBITMQ")).await;
        let command = db.program(env!("CARGO_BIN_EXE_outbox"), &rabbit.url);
        let relay = Running::start(command, "publishing to");
        rabbit.freezes();
        db.run("INSERT INTO outbox (body) VALUES ('{}')").await;
        let free = "SELECT count(*) FROM (SELECT FROM outbox FOR UPDATE SKIP LOCKED) AS free";
        until("it waits for the confirmation", async || {
            db.number(free).await == 0
        })
        .await;
        assert_eq!(relay.stop(), "published=0");
        let unpublished = "SELECT count(*) FROM outbox WHERE published_at IS NULL";
        assert_eq!(db.number(unpublished).await, 1);
    }

    pub(super) async fn from_an_outbox_whose_relay_crashes(db: &Fresh, rabbit: &Rabbit<'_>) {
        let outbox = |crash_after: Option<&str>| {
            let mut command = db.program(env!("CARGO_BIN_EXE_outbox"), &server("RABBITMQ"));
            command.args(["--publish", "30"]);
            if let Some(events) = crash_after {
                command.env("CRASH_AFTER", events);
            }
            Running::start(command, "publishing to")
        };
        let (crashed, _) = outbox(Some("25")).ended();
        assert!(!crashed.success(), "it crashes");
        let unpublished = "SELECT count(*) FROM outbox WHERE published_at IS NULL";
        assert_eq!(db.number(unpublished).await, 10, "published, and not noted");
        let relay = outbox(None);
        until("all is noted", async || db.number(unpublished).await == 0).await;
        relay.stop();
        let service = service(db, &[]);
        all_is_handled(db, rabbit).await;
        let last = service.stop();
        assert_eq!(last, "processed=62 duplicates=20 redelivered=0 rejected=0");
        everything_is_acknowledged(db, rabbit).await;
    }
}
