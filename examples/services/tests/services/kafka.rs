//! The notification service on Kafka.

use std::collections::HashMap;
use std::process::Stdio;
use std::time::Duration;

use idempotent_services::notify::{Channel, Notice, TransferCompleted};
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use rdkafka::message::{Header, Headers as _, Message as _, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::util::Timeout;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::database;
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
    no_notice_of_an_account_overtakes_one_that_fails,
    a_dead_letter_that_is_too_large_is_kept_without_its_body,
    what_is_compressed_is_read,
    killed_in_the_middle_it_goes_on_where_it_was,
    it_stops_while_the_database_is_down,
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
        // All in one partition: what fails has others behind it.
        self.publish_with(&self.config, "account", bodies).await;
    }

    async fn publish_with(&self, config: &ClientConfig, key: &str, bodies: &[Vec<u8>]) {
        let producer: FutureProducer = config.create().unwrap();
        let headers = OwnedHeaders::new().insert(Header {
            key: "traceparent",
            value: Some("00-1-2-01"),
        });
        for body in bodies {
            let record = FutureRecord::to(self.name).key(key).payload(body);
            let record = record.headers(headers.clone());
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

    /// The dead letters, by their bodies.
    fn dead_letters(&self, count: usize) -> Vec<Letter> {
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
            let headers = letter.headers().unwrap().iter();
            Letter {
                body: letter.payload().unwrap_or_default().to_vec(),
                key: text(letter.key().unwrap()),
                headers: headers
                    .map(|header| (header.key.to_owned(), text(header.value.unwrap())))
                    .collect(),
            }
        };
        let mut letters: Vec<_> = std::iter::repeat_with(letter).take(count).collect();
        letters.sort_by(|one, other| one.body.cmp(&other.body));
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

struct Letter {
    body: Vec<u8>,
    key: String,
    headers: HashMap<String, String>,
}

fn service(db: &Fresh, args: &[&str]) -> Running {
    let mut command = db.program(env!("CARGO_BIN_EXE_kafka"), &server("KAFKA"));
    command.args(args);
    Running::start(command, "waiting for")
}

fn notice(number: u32, cents: i64) -> Vec<u8> {
    notice_of(TransferCompleted {
        cents,
        ..TransferCompleted::sample(number)
    })
}

fn notice_of(event: TransferCompleted) -> Vec<u8> {
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
        assert_eq!(letters[0].body, unread);
        assert_eq!(letters[1].body, notice(1, 0));
        for letter in letters {
            assert_eq!(letter.key, "account");
            assert_eq!(letter.headers["traceparent"], "00-1-2-01");
            assert!(
                letter.headers["origin"].starts_with(kafka.name),
                "{:?}",
                letter.headers
            );
        }
    }

    pub(super) async fn what_fails_comes_again_until_it_succeeds(db: &Fresh, kafka: &Kafka<'_>) {
        let service = service(db, &["--batch", "10"]);
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

    /// What is behind it, of another account, is handled each time, and is a duplicate each time but
    /// the first.
    pub(super) async fn what_always_fails_is_a_dead_letter(db: &Fresh, kafka: &Kafka<'_>) {
        let service = service(db, &["--batch", "10"]);
        db.run("ALTER TABLE notifications ADD CHECK (cents <> 200)")
            .await;
        kafka.publish(&[notice(1, 200), notice(2, 100)]).await;
        kafka.until_committed(2).await;
        let last = service.stop();
        assert!(last.starts_with("processed=1 "), "{last}");
        assert!(last.ends_with(" redelivered=5 rejected=1"), "{last}");
        let letters = kafka.dead_letters(1);
        assert_eq!(letters[0].body, notice(1, 200));
        let why = &letters[0].headers["why"];
        assert!(why.contains("it failed 5 times"), "{why}");
    }

    pub(super) async fn no_notice_of_an_account_overtakes_one_that_fails(
        db: &Fresh,
        kafka: &Kafka<'_>,
    ) {
        let service = service(db, &["--batch", "10"]);
        db.run("ALTER TABLE notifications ADD CONSTRAINT none CHECK (cents <> 200)")
            .await;
        // The first and the last are of one account.
        kafka
            .publish(&[notice(1, 200), notice(2, 100), notice(11, 300)])
            .await;
        // All of them are handled once, together or not.
        service.says("again");
        service.says("again");
        let stored = "SELECT count(*) FROM notifications WHERE event_id = 'transfer-11'";
        assert_eq!(db.number(stored).await, 0);
        db.run("ALTER TABLE notifications DROP CONSTRAINT none")
            .await;
        kafka.until_committed(3).await;
        let last = service.stop();
        assert!(last.starts_with("processed=3 "), "{last}");
        assert!(last.ends_with(" rejected=0"), "{last}");
    }

    pub(super) async fn a_dead_letter_that_is_too_large_is_kept_without_its_body(
        db: &Fresh,
        kafka: &Kafka<'_>,
    ) {
        let service = service(db, &[]);
        let mut config = kafka.config.clone();
        config.set("message.max.bytes", "200000000");
        let too_large = vec![b' '; 100_000_000];
        kafka
            .publish_with(&config, "account", &[too_large, notice(1, 100)])
            .await;
        kafka.until_committed(2).await;
        let last = service.stop();
        assert_eq!(last, "processed=1 duplicates=0 redelivered=0 rejected=1");
        let letters = kafka.dead_letters(1);
        assert_eq!(letters[0].body, b"");
        assert!(letters[0].headers.contains_key("origin"));
    }

    pub(super) async fn what_is_compressed_is_read(db: &Fresh, kafka: &Kafka<'_>) {
        let service = service(db, &[]);
        let codecs = ["gzip", "zstd", "lz4", "snappy"];
        for (number, codec) in (1..).zip(codecs) {
            let mut config = kafka.config.clone();
            config.set("compression.type", codec);
            let event = TransferCompleted {
                // So long that it is smaller when it is compressed: else it is sent as it is.
                account: "a".repeat(1000),
                ..TransferCompleted::sample(number)
            };
            kafka
                .publish_with(&config, codec, &[notice_of(event)])
                .await;
        }
        kafka.until_committed(4).await;
        let last = service.stop();
        assert_eq!(last, "processed=4 duplicates=0 redelivered=0 rejected=0");
    }

    pub(super) async fn killed_in_the_middle_it_goes_on_where_it_was(
        db: &Fresh,
        kafka: &Kafka<'_>,
    ) {
        service(db, &[]).stop();
        let held = database::hold_event(db, "transfer-20").await;
        let killed = service(db, &["--publish", "50"]);
        database::until_one_waits(db).await;
        killed.kill();
        held.rollback().await.unwrap();
        db.until_idle().await;
        let before = db.number(STORED).await;
        assert!(before < 100, "{before}");
        let service = service(db, &["--batch", "50"]);
        kafka.until_committed(200).await;
        assert_eq!(db.number(STORED).await, 100);
        let last = service.stop();
        let processed = format!("processed={} ", 100 - before);
        assert!(last.starts_with(&processed), "{before} and then {last}");
        assert!(last.ends_with(" redelivered=0 rejected=0"), "{last}");
    }

    pub(super) async fn it_stops_while_the_database_is_down(db: &Fresh, kafka: &Kafka<'_>) {
        let mut command = db.program(env!("CARGO_BIN_EXE_kafka"), &server("KAFKA"));
        command.stderr(Stdio::piped());
        let service = Running::start(command, "waiting for");
        database::goes_down(db).await;
        kafka.publish(&[notice(1, 100)]).await;
        service.complains("the database is not up");
        let last = service.stop();
        assert_eq!(last, "processed=0 duplicates=0 redelivered=0 rejected=0");
        assert_eq!(kafka.committed(), 0);
        database::comes_back(db).await;
        let next = self::service(db, &[]);
        kafka.until_committed(1).await;
        let last = next.stop();
        assert_eq!(last, "processed=1 duplicates=0 redelivered=0 rejected=0");
    }

    /// Partitions move while records are handled.
    pub(super) async fn two_processes_share_the_notices(db: &Fresh, kafka: &Kafka<'_>) {
        let first = service(db, &["--batch", "4"]);
        let second = service(db, &["--batch", "4"]);
        let mut published = 0;
        let (mut has_first, mut has_second) = (false, false);
        until("both have partitions", async || {
            let notices: Vec<_> = (0..8).map(|n| notice(published + n, 100)).collect();
            for (partition, notice) in notices.iter().enumerate() {
                let key = format!("account-{partition}");
                let twice = [notice.clone(), notice.clone()];
                kafka.publish_with(&kafka.config, &key, &twice).await;
            }
            published += 8;
            has_first |= first.has_said("processed");
            has_second |= second.has_said("processed");
            has_first && has_second
        })
        .await;
        kafka.until_committed(2 * i64::from(published)).await;
        let [first, second] = [first.stop(), second.stop()].map(|last| counts(&last));
        assert_eq!(first.processed + second.processed, u64::from(published));
        assert!(first.duplicates + second.duplicates >= u64::from(published));
        assert_eq!(db.number(STORED).await, i64::from(published));
    }
}
