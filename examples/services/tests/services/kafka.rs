//! The notification service on Kafka.

use std::time::Duration;

use idempotent_services::notify::{Channel, Notice, TransferCompleted};
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use rdkafka::message::{Headers as _, Message as _};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::util::Timeout;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::running::{Fresh, Running, counts, in_fresh_database, server, until};

const STORED: &str = "SELECT count(*) FROM notifications";

const SOON: Duration = Duration::from_secs(10);

macro_rules! tests {
    ($($test:ident),+ $(,)?) => {
        $(#[test]
        #[cfg_attr(
            not(all(has_postgres, has_kafka)),
            ignore = "needs Postgres and Kafka: run `cargo xtask test`"
        )]
        fn $test() {
            in_fresh_database(async |db| {
                let kafka = Kafka::new(db);
                scenarios::$test(db, &kafka).await;
                kafka.forget().await;
            });
        })+
    };
}

tests!(
    each_notice_is_stored_once_though_each_event_comes_twice,
    in_batches_too,
    a_group_that_is_rewound_finds_duplicates_only,
    what_can_never_be_handled_is_a_dead_letter,
    what_fails_comes_again_until_it_succeeds,
    what_always_fails_is_a_dead_letter,
    killed_in_the_middle_it_goes_on_where_it_was,
    two_processes_share_the_notices,
);

/// The test's own clients.
struct Kafka<'d> {
    name: &'d str,
    config: ClientConfig,
}

impl<'d> Kafka<'d> {
    fn new(db: &'d Fresh) -> Self {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", server("KAFKA"));
        config.set("group.id", format!("{}-notify", db.name));
        Self {
            name: &db.name,
            config,
        }
    }

    /// Reads and writes the offsets of the group, and is no member of it.
    fn onlooker(&self) -> BaseConsumer {
        self.config.create().unwrap()
    }

    async fn publish(&self, bodies: &[Vec<u8>]) {
        let producer: FutureProducer = self.config.create().unwrap();
        for body in bodies {
            // All in one partition: what fails has others behind it.
            let record = FutureRecord::to(self.name).key("account").payload(body);
            producer.send(record, Timeout::Never).await.unwrap();
        }
    }

    fn partitions(&self, topic: &str) -> Vec<i32> {
        let metadata = self.onlooker().fetch_metadata(Some(topic), SOON).unwrap();
        let partitions = metadata.topics()[0].partitions();
        partitions
            .iter()
            .map(rdkafka::metadata::MetadataPartition::id)
            .collect()
    }

    /// How many records the group has committed.
    fn committed(&self) -> i64 {
        let mut partitions = TopicPartitionList::new();
        for partition in self.partitions(self.name) {
            partitions.add_partition(self.name, partition);
        }
        let committed = self.onlooker().committed_offsets(partitions, SOON).unwrap();
        let offset = |offset| match offset {
            Offset::Offset(offset) => offset,
            _ => 0, // nothing yet
        };
        let committed = committed.elements();
        committed.iter().map(|one| offset(one.offset())).sum()
    }

    fn rewind(&self) {
        let mut offsets = TopicPartitionList::new();
        for partition in self.partitions(self.name) {
            offsets
                .add_partition_offset(self.name, partition, Offset::Offset(0))
                .unwrap();
        }
        self.onlooker().commit(&offsets, CommitMode::Sync).unwrap();
    }

    /// All that were published: the broker `tansu` says of a partition with a batch of many records
    /// that it ends after the first.
    async fn until_committed(&self, records: i64) {
        until("all is committed", async || self.committed() >= records).await;
        assert_eq!(self.committed(), records);
    }

    /// The dead letters: key, body, and why.
    fn dead_letters(&self, count: usize) -> Vec<(String, Vec<u8>, String)> {
        let dead = format!("{}.dead", self.name);
        let reader = self.onlooker();
        let mut partitions = TopicPartitionList::new();
        for partition in self.partitions(&dead) {
            partitions
                .add_partition_offset(&dead, partition, Offset::Beginning)
                .unwrap();
        }
        reader.assign(&partitions).unwrap();
        let letter = || {
            let letter = reader.poll(SOON).expect("it is there").unwrap();
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let why = letter.headers().unwrap().get(0).value.unwrap();
            let body = letter.payload().unwrap().to_vec();
            (text(letter.key().unwrap()), body, text(why))
        };
        let mut letters: Vec<_> = std::iter::repeat_with(letter).take(count).collect();
        letters.sort();
        letters
    }

    async fn forget(&self) {
        let admin: AdminClient<DefaultClientContext> = self.config.create().unwrap();
        let dead = format!("{}.dead", self.name);
        let topics = [self.name, &*dead];
        admin
            .delete_topics(&topics, &AdminOptions::new())
            .await
            .unwrap();
    }
}

fn service(db: &Fresh, args: &[&str]) -> Running {
    let mut command = db.program(env!("CARGO_BIN_EXE_kafka"), &server("KAFKA"));
    command.args(args);
    Running::start(command, "waiting for")
}

fn notice(number: u32, cents: i64) -> Vec<u8> {
    let event = TransferCompleted {
        cents,
        ..TransferCompleted::sample(number)
    };
    let channel = Channel::Push;
    serde_json::to_vec(&Notice { event, channel }).unwrap()
}

mod scenarios {
    use super::*;

    pub(super) async fn each_notice_is_stored_once_though_each_event_comes_twice(
        db: &Fresh,
        kafka: &Kafka<'_>,
    ) {
        twice(db, kafka, "1").await;
    }

    pub(super) async fn in_batches_too(db: &Fresh, kafka: &Kafka<'_>) {
        twice(db, kafka, "16").await;
    }

    async fn twice(db: &Fresh, kafka: &Kafka<'_>, batch: &str) {
        let service = service(db, &["--publish", "20", "--batch", batch]);
        kafka.until_committed(80).await;
        let last = service.stop();
        assert_eq!(last, "processed=40 duplicates=40 redelivered=0 rejected=0");
        assert_eq!(db.number(STORED).await, 40);
        assert_eq!(kafka.committed(), 80);
    }

    pub(super) async fn a_group_that_is_rewound_finds_duplicates_only(
        db: &Fresh,
        kafka: &Kafka<'_>,
    ) {
        let before = service(db, &["--publish", "20", "--batch", "16"]);
        kafka.until_committed(80).await;
        before.stop();
        kafka.rewind();
        assert_eq!(kafka.committed(), 0);
        let rewound = service(db, &["--batch", "16"]);
        kafka.until_committed(80).await;
        let last = rewound.stop();
        assert_eq!(last, "processed=0 duplicates=80 redelivered=0 rejected=0");
        assert_eq!(db.number(STORED).await, 40);
    }

    pub(super) async fn what_can_never_be_handled_is_a_dead_letter(db: &Fresh, kafka: &Kafka<'_>) {
        let service = service(db, &["--batch", "10"]);
        let unread = b"{\"event\":".to_vec();
        kafka
            .publish(&[unread.clone(), notice(1, 0), notice(2, 100)])
            .await;
        kafka.until_committed(3).await;
        let last = service.stop();
        assert_eq!(last, "processed=1 duplicates=0 redelivered=0 rejected=2");
        assert_eq!(db.number(STORED).await, 1);
        let letters = kafka.dead_letters(2);
        let letters = letters.iter().map(|(key, body, _)| (&**key, &**body));
        assert_eq!(
            letters.collect::<Vec<_>>(),
            [("account", &*unread), ("account", &*notice(1, 0))]
        );
    }

    pub(super) async fn what_fails_comes_again_until_it_succeeds(db: &Fresh, kafka: &Kafka<'_>) {
        let mut service = service(db, &["--batch", "10"]);
        db.run("ALTER TABLE notifications RENAME TO hidden").await;
        kafka.publish(&[notice(1, 100), notice(2, 200)]).await;
        service.says("again");
        assert_eq!(kafka.committed(), 0);
        db.run("ALTER TABLE hidden RENAME TO notifications").await;
        kafka.until_committed(2).await;
        let last = service.stop();
        assert!(last.starts_with("processed=2 duplicates=0 "), "{last}");
        assert!(last.ends_with(" rejected=0"), "{last}");
        assert_eq!(db.number(STORED).await, 2);
    }

    /// What is behind it is handled each time, and is a duplicate each time but the first.
    pub(super) async fn what_always_fails_is_a_dead_letter(db: &Fresh, kafka: &Kafka<'_>) {
        let service = service(db, &["--batch", "10"]);
        db.run("ALTER TABLE notifications ADD CHECK (cents <> 200)")
            .await;
        kafka.publish(&[notice(1, 200), notice(2, 100)]).await;
        kafka.until_committed(2).await;
        let last = service.stop();
        assert!(last.starts_with("processed=1 "), "{last}");
        assert!(last.ends_with(" redelivered=5 rejected=1"), "{last}");
        let [(_, body, why)] = &kafka.dead_letters(1)[..] else {
            panic!("one dead letter");
        };
        assert_eq!(*body, notice(1, 200));
        assert!(why.contains("it failed 5 times"), "{why}");
    }

    pub(super) async fn killed_in_the_middle_it_goes_on_where_it_was(
        db: &Fresh,
        kafka: &Kafka<'_>,
    ) {
        let killed = service(db, &["--publish", "200"]);
        until("some are stored", async || db.number(STORED).await > 20).await;
        killed.kill();
        db.until_idle().await;
        let before = db.number(STORED).await;
        assert!(before < 400, "it is killed in the middle");
        let service = service(db, &["--batch", "50"]);
        kafka.until_committed(800).await;
        assert_eq!(db.number(STORED).await, 400);
        let last = service.stop();
        let processed = format!("processed={} ", 400 - before);
        assert!(last.starts_with(&processed), "{before} and then {last}");
        assert!(last.ends_with(" redelivered=0 rejected=0"), "{last}");
    }

    /// Partitions move while records are handled.
    pub(super) async fn two_processes_share_the_notices(db: &Fresh, kafka: &Kafka<'_>) {
        let first = service(db, &["--batch", "4", "--publish", "200"]);
        let second = service(db, &["--batch", "4"]);
        kafka.until_committed(800).await;
        let [first, second] = [first.stop(), second.stop()].map(|last| counts(&last));
        assert_eq!(first.processed + second.processed, 400);
        assert!(first.duplicates + second.duplicates >= 400);
        assert_eq!(db.number(STORED).await, 400);
    }
}
