//! The notification service on RabbitMQ, and the outbox that feeds it.

use std::process::Stdio;

use idempotent_services::notify::{Channel, TransferCompleted};
use idempotent_services::rabbit;
use lapin::options::{BasicAckOptions, BasicGetOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties};

use crate::database;
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
    killed_in_the_middle_it_goes_on_where_it_was,
    while_the_database_is_down_nothing_is_given_up,
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

    async fn forget(&self) {
        let dead = format!("{}.dead", self.name);
        for queue in self.queues().into_iter().chain([dead]) {
            self.channel
                .queue_delete(queue.as_str().into(), QueueDeleteOptions::default())
                .await
                .unwrap();
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

/// Nothing is left in the queues, and nothing comes back when the service has stopped.
async fn everything_is_acknowledged(rabbit: &Rabbit<'_>) {
    for queue in rabbit.queues() {
        assert_eq!(rabbit.ready(&queue).await, 0, "{queue}");
    }
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
        let mut service = Running::start(command, sent);
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
        everything_is_acknowledged(rabbit).await;
        assert_eq!(
            db.number("SELECT count(DISTINCT event_id) FROM notifications")
                .await,
            21,
            "with the key `event.id` alone, half of the notices would have been swallowed"
        );
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
        everything_is_acknowledged(rabbit).await;
    }

    pub(super) async fn killed_in_the_middle_it_goes_on_where_it_was(
        db: &Fresh,
        rabbit: &Rabbit<'_>,
    ) {
        let killed = service(db, &["--publish", "200"]);
        until("some are stored", async || db.number(STORED).await > 20).await;
        killed.kill();
        db.until_idle().await;
        let before = db.number(STORED).await;
        let service = service(db, &["--batch", "50"]);
        all_is_handled(db, rabbit).await;
        assert_eq!(db.number(STORED).await, 402);
        let last = service.stop();
        assert!(
            last.starts_with(&format!("processed={} ", 402 - before)),
            "{before} and then {last}"
        );
        everything_is_acknowledged(rabbit).await;
    }

    pub(super) async fn while_the_database_is_down_nothing_is_given_up(
        db: &Fresh,
        rabbit: &Rabbit<'_>,
    ) {
        let mut command = db.program(env!("CARGO_BIN_EXE_rabbitmq"), &server("RABBITMQ"));
        command.stderr(Stdio::piped());
        let mut service = Running::start(command, READY);
        database::goes_down(db).await;
        let events: Vec<_> = (1..=10).map(TransferCompleted::sample).collect();
        rabbit
            .publish(&events.iter().map(body).collect::<Vec<_>>())
            .await;
        // More often than a message may be delivered.
        for _ in 0..=rabbit::DELIVERIES {
            service.complains("the database does not answer");
        }
        database::comes_back(db).await;
        all_is_handled(db, rabbit).await;
        let last = service.stop();
        assert!(last.starts_with("processed=22 "), "{last}");
        assert!(last.ends_with(" rejected=0"), "{last}");
        everything_is_acknowledged(rabbit).await;
        assert_eq!(rabbit.dead_letter().await, None);
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
        assert!(!outbox(Some("25")).ended().success(), "it crashes");
        let unpublished = "SELECT count(*) FROM outbox WHERE published_at IS NULL";
        assert_eq!(db.number(unpublished).await, 10, "published, and not noted");
        let relay = outbox(None);
        until("all is noted", async || db.number(unpublished).await == 0).await;
        relay.stop();
        let service = service(db, &[]);
        all_is_handled(db, rabbit).await;
        let last = service.stop();
        assert_eq!(last, "processed=62 duplicates=20 redelivered=0 rejected=0");
        everything_is_acknowledged(rabbit).await;
    }
}
