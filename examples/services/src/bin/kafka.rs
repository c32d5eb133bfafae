//! A bank's notification service on Kafka. Every transfer goes out by e-mail and by push.
//!
//! - Ours: `notify`, in one transaction with the key of each notice. A notice that comes again is a
//!   duplicate, and is passed like the first. Ours too, since Kafka does not count deliveries: what
//!   fails is read again, and after `DELIVERIES` times, or if it is rejected, goes to the topic
//!   `….dead`.
//! - Kafka's: it keeps the records for eight days, in order in each partition, and the offset up to
//!   which the group is done. From there it gives them out again: after a crash, when a partition
//!   moves to another member, when somebody rewinds the group.
//! - Acknowledged, by committing the offset: after the commit in the database, never before, and
//!   never past a record that must come again. Of the same account, none behind that is handled
//!   before it.
//!
//! The key is the event's id and the channel, never the offset. The offset tells where a record
//! lies, not what it says: a notice that is published twice has two of them, and in a topic that was
//! made anew other notices have the old ones.
//!
//! ```text
//! cargo run -p idempotent-services --features kafka --bin kafka -- --publish 20
//! ```

use std::collections::{BTreeMap, HashMap};
use std::process::ExitCode;
use std::time::Duration;

use futures_util::StreamExt as _;
use idempotent_runtime::Permanent;
use idempotent_services::database;
use idempotent_services::notify::{self, Channel, Notice, Order, TransferCompleted};
use idempotent_services::options::{Options, Program};
use idempotent_services::report::{self, Answer, Report};
use idempotent_services::stop::Stop;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{CommitMode, Consumer as _, StreamConsumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedHeaders, BorrowedMessage, Header, Message as _, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::util::Timeout;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use sqlx::PgPool;
use tokio::task::block_in_place;

const PROGRAM: Program = Program {
    name: "kafka",
    about: "Customers are told once per transfer and channel, however often Kafka delivers.",
    broker: "127.0.0.1:9092",
    needs: "",
};

/// After that many a record is a dead letter, whatever its error. They are counted in memory: after
/// a restart, anew.
const DELIVERIES: u32 = 5;

/// Before what failed is read again. Its partition has to wait, and here the others do too.
const AGAIN: Duration = Duration::from_secs(1);

/// For going back to a record.
const GO_BACK: Duration = Duration::from_secs(10);

/// So many members of the group have work.
const PARTITIONS: i32 = 4;

/// Seven days, and one more until a segment is full and can be deleted. So late may a rewound group
/// be: `notify` keeps its keys for longer. An older dead letter it may take for a new notice.
const RETENTION_MS: &str = "604800000";
const SEGMENT_MS: &str = "86400000";

/// The broker decides what is too large: a dead letter is larger than its record was.
const LARGEST: &str = "100000000";

type Failed = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    match service().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{}: {why}", PROGRAM.name);
            ExitCode::FAILURE
        }
    }
}

async fn service() -> Result<(), Failed> {
    let options = Options::from_args(&PROGRAM)?;
    let pool = database::connect(&options.database).await?;
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &options.broker);
    create_topics(&config.create()?, &options.name).await?;
    let producer = config.set("message.max.bytes", LARGEST).create()?;
    publish(&producer, &options).await?;
    let consumer: StreamConsumer = config
        .set("group.id", format!("{}-notify", options.name))
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .set("session.timeout.ms", "6000")
        .set("heartbeat.interval.ms", "500")
        .create()?;
    consumer.subscribe(&[&options.name])?;
    let pruner = database::prune(&pool)?;
    let mut service = Service {
        pool,
        report: Report::new(options.quiet),
        options,
        producer,
        consumer: &consumer,
        failures: HashMap::new(),
    };
    let mut stop = Stop::listen()?;
    println!("waiting for `{}`; Ctrl-C stops", service.options.name);
    service.consume(&mut stop).await?;
    stop.within_grace(pruner.stop()).await;
    let report = service.report;
    // It leaves the group, so that others take over at once.
    block_in_place(|| drop(consumer));
    report.finish();
    Ok(())
}

/// What exists is left as it is.
async fn create_topics(
    admin: &AdminClient<DefaultClientContext>,
    name: &str,
) -> Result<(), Failed> {
    let dead = dead(name);
    // As many replicas as the broker makes of any topic.
    let topic = |name, keep| {
        NewTopic::new(name, PARTITIONS, TopicReplication::Fixed(-1))
            .set("retention.ms", keep)
            .set("segment.ms", SEGMENT_MS)
    };
    let topics = [topic(name, RETENTION_MS), topic(&dead, "-1")];
    for created in admin.create_topics(&topics, &AdminOptions::new()).await? {
        match created {
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((topic, why)) => return Err(format!("the topic `{topic}`: {why}").into()),
        }
    }
    Ok(())
}

fn dead(name: &str) -> String {
    format!("{name}.dead")
}

/// For the show: each event twice, as from a relay that crashed before it noted the first. An
/// account has its notices in order: they are in one partition.
async fn publish(producer: &FutureProducer, options: &Options) -> Result<(), Failed> {
    let numbers: Vec<u32> = (1..=options.publish)
        .flat_map(|number| [number, number])
        .collect();
    for numbers in numbers.chunks(1000) {
        let mut stored = Vec::with_capacity(numbers.len());
        for (number, channel) in numbers.iter().flat_map(|n| Channel::ALL.map(|to| (*n, to))) {
            let event = TransferCompleted::sample(number);
            let key = event.account.clone();
            let body = serde_json::to_vec(&Notice { event, channel })?;
            let record = FutureRecord::to(&options.name).key(&key).payload(&body);
            stored.push(producer.send_result(record).map_err(|(why, _)| why)?);
        }
        for stored in stored {
            stored.await?.map_err(|(why, _)| why)?;
        }
    }
    Ok(())
}

/// Where a record lies.
type Place = (i32, i64);

struct Service<'c> {
    pool: PgPool,
    options: Options,
    report: Report,
    producer: FutureProducer,
    consumer: &'c StreamConsumer,
    /// How often those failed that come again.
    failures: HashMap<Place, u32>,
}

impl Service<'_> {
    async fn consume(&mut self, stop: &mut Stop) -> Result<(), Failed> {
        // librdkafka fetches ahead by itself.
        let mut batches = self.consumer.stream().ready_chunks(self.options.batch);
        loop {
            let batch = tokio::select! {
                biased;
                () = stop.asked() => return Ok(()),
                batch = batches.next() => batch.ok_or("Kafka has ended the subscription")?,
            };
            let mut records = Vec::with_capacity(batch.len());
            for record in batch {
                match record {
                    Ok(record) => records.push(record),
                    Err(why) if passes(&why) => eprintln!("{}: {why}", PROGRAM.name),
                    // Nothing is lost: what is not committed comes again when it is started again.
                    Err(why) => return Err(why.into()),
                }
            }
            // What is cut off is not committed, and comes again.
            let handled = self.handle(&records);
            stop.within_grace(handled).await.unwrap_or(Ok(()))?;
        }
    }

    /// Handles a batch; then commits, in each partition, up to the first record that must come
    /// again, and goes back to that.
    ///
    /// If the database is down for longer than `max.poll.interval.ms` (five minutes), others get its
    /// partitions, and wait for the database, too. Nothing is counted by that.
    async fn handle(&mut self, records: &[BorrowedMessage<'_>]) -> Result<(), Failed> {
        let notices = records.iter().map(|record| self.read(record)).collect();
        let results = notify::handle(&self.pool, notices, Order::ByAccount).await;
        let mut next = BTreeMap::new();
        let mut again = BTreeMap::new();
        for (record, result) in records.iter().zip(results) {
            let (partition, offset) = place(record);
            let answer = self.report.told(&format!("{partition}:{offset}"), &result);
            if again.contains_key(&partition) {
                continue; // it comes again, after the one before it
            }
            match (answer, result) {
                (Answer::Redeliver, _) => {
                    *self.failures.entry((partition, offset)).or_default() += 1;
                    again.insert(partition, offset);
                    continue;
                }
                (Answer::Reject, Err(why)) => self.dead_letter(record, &why).await?,
                _ => {}
            }
            self.failures.remove(&(partition, offset));
            next.insert(partition, offset + 1);
        }
        self.commit(&next)?;
        self.go_back(again).await
    }

    /// Reads a notice. One that failed too often is not tried again.
    fn read(&self, record: &BorrowedMessage<'_>) -> sqlx::Result<Notice> {
        if self.failures.get(&place(record)) >= Some(&DELIVERIES) {
            let why = format!("it failed {DELIVERIES} times");
            return Err(sqlx::Error::Encode(Permanent::new(why).into()));
        }
        notify::read(record.payload().unwrap_or_default())
    }

    /// If Kafka refuses it, the records come again, and are duplicates.
    fn commit(&self, next: &BTreeMap<i32, i64>) -> Result<(), Failed> {
        if next.is_empty() {
            return Ok(());
        }
        let mut offsets = TopicPartitionList::new();
        for (partition, offset) in next {
            let offset = Offset::Offset(*offset);
            offsets.add_partition_offset(&self.options.name, *partition, offset)?;
        }
        // librdkafka waits for Kafka's answer: not on a thread that others need.
        let committed = block_in_place(|| self.consumer.commit(&offsets, CommitMode::Sync));
        if let Err(why) = committed {
            eprintln!("{}: {why}", PROGRAM.name);
        }
        Ok(())
    }

    /// If that fails, the service ends, and starts again from the offsets that are committed: to go
    /// on would be to pass the record.
    async fn go_back(&self, again: BTreeMap<i32, i64>) -> Result<(), Failed> {
        if again.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(AGAIN).await;
        for (partition, offset) in again {
            let offset = Offset::Offset(offset);
            let topic = &self.options.name;
            block_in_place(|| self.consumer.seek(topic, partition, offset, GO_BACK))?;
        }
        Ok(())
    }

    /// Stores a dead letter: it is safe when this returns. One that is too large with these headers
    /// is stored without its body, which stays where it came from until Kafka deletes it.
    async fn dead_letter(
        &self,
        record: &BorrowedMessage<'_>,
        why: &sqlx::Error,
    ) -> Result<(), Failed> {
        let (partition, offset) = place(record);
        let origin = format!("{} {partition} {offset}", record.topic());
        let ours = |headers: OwnedHeaders| {
            let why = report::why(why);
            let ours = [("why", &why), ("origin", &origin)];
            ours.into_iter().fold(headers, |headers, (key, value)| {
                headers.insert(Header {
                    key,
                    value: Some(value),
                })
            })
        };
        let theirs = record.headers().map(BorrowedHeaders::detach);
        let topic = dead(&self.options.name);
        let mut letter: FutureRecord<'_, [u8], [u8]> =
            FutureRecord::to(&topic).headers(ours(theirs.unwrap_or_default()));
        letter.key = record.key();
        letter.payload = record.payload();
        let mut stored = self.producer.send(letter, Timeout::Never).await;
        if let Err((why, _)) = &stored
            && why.rdkafka_error_code() == Some(RDKafkaErrorCode::MessageSizeTooLarge)
        {
            eprintln!(
                "{}: {origin} is stored without its body: {why}",
                PROGRAM.name
            );
            let mut letter: FutureRecord<'_, [u8], [u8]> =
                FutureRecord::to(&topic).headers(ours(OwnedHeaders::new()));
            letter.key = record.key();
            stored = self.producer.send(letter, Timeout::Never).await;
        }
        stored.map_err(|(why, _)| why)?;
        Ok(())
    }
}

/// Says whether librdkafka gets over an error by itself: it connects again, and reads on. Else it
/// would tell of it for ever, and read nothing: it may not read the topic, or cannot unpack it.
fn passes(why: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;

    matches!(
        why,
        KafkaError::MessageConsumption(
            Code::AllBrokersDown
        | Code::BrokerTransportFailure
        | Code::Resolve
        | Code::OperationTimedOut
        | Code::RequestTimedOut
        | Code::NetworkException
        | Code::CoordinatorLoadInProgress
        | Code::CoordinatorNotAvailable
        | Code::NotCoordinator
        | Code::LeaderNotAvailable
        | Code::NotLeaderForPartition
        // The database was down for long: it joins the group again.
        | Code::PollExceeded
        // Not all brokers have heard of a new topic yet.
        | Code::UnknownTopicOrPartition
        )
    )
}

fn place(record: &BorrowedMessage<'_>) -> Place {
    (record.partition(), record.offset())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_comes_back_and_a_right_to_read_does_not() {
        let passes = |code| passes(&KafkaError::MessageConsumption(code));
        assert!(passes(RDKafkaErrorCode::BrokerTransportFailure));
        assert!(!passes(RDKafkaErrorCode::TopicAuthorizationFailed));
        assert!(!passes(RDKafkaErrorCode::NotImplemented));
    }
}
