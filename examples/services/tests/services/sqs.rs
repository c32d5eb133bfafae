//! The notification service on SQS.

use std::process::{Command, Stdio};

use aws_config::BehaviorVersion;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{Credentials, Region};
use aws_sdk_sqs::types::MessageSystemAttributeName::MessageGroupId;
use aws_sdk_sqs::types::QueueAttributeName::MessageRetentionPeriod;
use aws_sdk_sqs::types::QueueAttributeName::{
    ApproximateNumberOfMessages, ApproximateNumberOfMessagesNotVisible,
};
use aws_sdk_sqs::types::{Message, MessageAttributeValue};
use idempotent_services::notify::{Channel, Notice, TransferCompleted};

use crate::database;
use crate::running::{Fresh, Running, counts, in_fresh_database, server, until};

/// As moto has it.
const LARGEST: usize = 1024 * 1024;
const READY: &str = "waiting for";
const STORED: &str = "SELECT count(*) FROM notifications";

macro_rules! tests {
    ($($test:ident),+ $(,)?) => {
        $(#[test]
        #[cfg_attr(
            not(all(has_postgres, has_sqs)),
            ignore = "needs Postgres and SQS: run `cargo xtask test`"
        )]
        fn $test() {
            in_fresh_database(async |db| scenarios::$test(db, &Sqs::connect(db).await).await);
        })+
    };
}

tests!(
    what_its_producer_sends_again_is_stored_once,
    what_its_producer_sends_again_after_it_was_deleted_is_a_duplicate,
    what_is_shown_again_in_the_middle_of_a_handler_waits_and_is_a_duplicate,
    what_can_never_be_handled_is_a_dead_letter,
    a_dead_letter_that_is_too_large_is_kept_without_the_reason,
    what_fails_comes_again_until_it_succeeds,
    what_always_fails_is_a_dead_letter,
    no_notice_of_an_account_overtakes_one_that_fails,
    while_the_database_is_down_it_keeps_what_it_has,
    it_stops_while_the_database_is_down,
    its_queues_keep_messages_for_fourteen_days,
);

/// The test's own client.
struct Sqs<'d> {
    db: &'d Fresh,
    client: Client,
}

impl<'d> Sqs<'d> {
    async fn connect(db: &'d Fresh) -> Self {
        let config = aws_config::defaults(BehaviorVersion::latest())
            .endpoint_url(server("SQS"))
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("test", "test", None, None, "test"))
            .load()
            .await;
        Self {
            db,
            client: Client::new(&config),
        }
    }

    fn service(&self, args: &[&str]) -> Running {
        self.service_with(args, "60")
    }

    fn service_with(&self, args: &[&str], visibility: &str) -> Running {
        Running::start(self.command(args, visibility), READY)
    }

    fn complaining(&self, visibility: &str) -> Running {
        let mut command = self.command(&[], visibility);
        command.stderr(Stdio::piped());
        Running::start(command, READY)
    }

    fn command(&self, args: &[&str], visibility: &str) -> Command {
        let mut command = self.db.program(env!("CARGO_BIN_EXE_sqs"), &server("SQS"));
        command.args(args).env("VISIBILITY_SECONDS", visibility);
        command.env("AWS_ACCESS_KEY_ID", "test");
        command.env("AWS_SECRET_ACCESS_KEY", "test");
        command.env("AWS_REGION", "us-east-1");
        command
    }

    async fn url(&self, suffix: &str) -> String {
        let name = format!("{}{suffix}.fifo", self.db.name);
        let url = self.client.get_queue_url().queue_name(name).send().await;
        url.unwrap().queue_url.unwrap()
    }

    async fn send(&self, bodies: &[String]) {
        let url = self.url("").await;
        for (number, body) in bodies.iter().enumerate() {
            self.send_as(&url, &format!("{number}"), body).await;
        }
    }

    async fn send_as(&self, url: &str, deduplication_id: &str, body: &str) {
        let trace = MessageAttributeValue::builder()
            .data_type("String")
            .string_value("00-1-2-01");
        self.client
            .send_message()
            .queue_url(url)
            .message_body(body)
            .message_group_id("test")
            .message_deduplication_id(deduplication_id)
            .message_attributes("traceparent", trace.build().unwrap())
            .send()
            .await
            .unwrap();
    }

    async fn receive(&self, suffix: &str) -> Vec<Message> {
        let received = self
            .client
            .receive_message()
            .queue_url(self.url(suffix).await)
            .max_number_of_messages(10)
            .message_attribute_names("All")
            .message_system_attribute_names(MessageGroupId)
            .send()
            .await
            .unwrap();
        received.messages.unwrap_or_default()
    }

    /// Messages in a queue, hidden ones too.
    async fn count(&self, suffix: &str) -> u32 {
        let attributes = self
            .client
            .get_queue_attributes()
            .queue_url(self.url(suffix).await)
            .attribute_names(ApproximateNumberOfMessages)
            .attribute_names(ApproximateNumberOfMessagesNotVisible)
            .send()
            .await
            .unwrap()
            .attributes
            .unwrap();
        attributes
            .values()
            .map(|count| count.parse::<u32>().unwrap())
            .sum()
    }

    async fn until_empty(&self) {
        until("all is deleted", async || self.count("").await == 0).await;
    }
}

fn notice(cents: i64) -> String {
    notice_of(1, cents)
}

fn notice_of(number: u32, cents: i64) -> String {
    let notice = Notice {
        event: TransferCompleted {
            cents,
            ..TransferCompleted::sample(number)
        },
        channel: Channel::Email,
    };
    serde_json::to_string(&notice).unwrap()
}

mod scenarios {
    use super::*;

    pub(super) async fn what_its_producer_sends_again_is_stored_once(db: &Fresh, sqs: &Sqs<'_>) {
        let service = sqs.service(&["--publish", "10", "--batch", "10"]);
        sqs.until_empty().await;
        let last = service.stop();
        assert_eq!(last, "processed=20 duplicates=20 redelivered=0 rejected=0");
        assert_eq!(db.number(STORED).await, 20);
    }

    /// As after the five minutes in which SQS knows a deduplication id.
    pub(super) async fn what_its_producer_sends_again_after_it_was_deleted_is_a_duplicate(
        db: &Fresh,
        sqs: &Sqs<'_>,
    ) {
        let service = sqs.service(&[]);
        let url = sqs.url("").await;
        for deduplication_id in ["first", "again"] {
            sqs.send_as(&url, deduplication_id, &notice(100)).await;
            sqs.until_empty().await;
        }
        let last = service.stop();
        assert_eq!(last, "processed=1 duplicates=1 redelivered=0 rejected=0");
        assert_eq!(db.number(STORED).await, 1);
    }

    /// The first process is stopped in the middle, as a machine may be, until the visibility timeout
    /// has run out and another has the message.
    pub(super) async fn what_is_shown_again_in_the_middle_of_a_handler_waits_and_is_a_duplicate(
        db: &Fresh,
        sqs: &Sqs<'_>,
    ) {
        let first = sqs.service_with(&[], "1");
        let held = database::hold(db, "LOCK TABLE notifications IN SHARE MODE").await;
        sqs.send(&[notice(100)]).await;
        database::until_one_waits(db).await;
        first.signal("STOP");
        let second = sqs.service_with(&[], "1");
        database::until_wait(db, 2).await;
        held.rollback().await.unwrap();
        first.signal("CONT");
        sqs.until_empty().await;
        let [first, second] = [first.stop(), second.stop()].map(|last| counts(&last));
        assert_eq!((first.processed, first.duplicates), (1, 0));
        assert_eq!((second.processed, second.duplicates), (0, 1));
        assert_eq!(db.number(STORED).await, 1);
    }

    pub(super) async fn what_can_never_be_handled_is_a_dead_letter(db: &Fresh, sqs: &Sqs<'_>) {
        let service = sqs.service(&["--batch", "10"]);
        sqs.send(&[notice(0), "{".to_owned(), notice(100)]).await;
        sqs.until_empty().await;
        let last = service.stop();
        assert_eq!(last, "processed=1 duplicates=0 redelivered=0 rejected=2");
        assert_eq!(db.number(STORED).await, 1);
        let letters = sqs.receive("-dead").await;
        assert_eq!(letters.len(), 2);
        for letter in letters {
            assert_eq!(letter.attributes().unwrap()[&MessageGroupId], "test");
            let attribute = |name| letter.message_attributes().unwrap()[name].string_value();
            assert_eq!(attribute("traceparent"), Some("00-1-2-01"));
            assert!(attribute("why").is_some());
        }
    }

    pub(super) async fn a_dead_letter_that_is_too_large_is_kept_without_the_reason(
        _: &Fresh,
        sqs: &Sqs<'_>,
    ) {
        let service = sqs.service(&[]);
        let attribute = "traceparent".len() + "String".len() + "00-1-2-01".len();
        sqs.send(&["{".repeat(LARGEST - attribute)]).await;
        sqs.until_empty().await;
        let last = service.stop();
        assert_eq!(last, "processed=0 duplicates=0 redelivered=0 rejected=1");
        let letters = sqs.receive("-dead").await;
        assert_eq!(letters.len(), 1);
        assert_eq!(letters[0].body().unwrap().len(), LARGEST - attribute);
    }

    pub(super) async fn what_fails_comes_again_until_it_succeeds(db: &Fresh, sqs: &Sqs<'_>) {
        let service = sqs.service_with(&[], "1");
        db.run("ALTER TABLE notifications RENAME TO hidden").await;
        sqs.send(&[notice(100)]).await;
        service.says("again");
        db.run("ALTER TABLE hidden RENAME TO notifications").await;
        sqs.until_empty().await;
        let last = service.stop();
        assert!(last.starts_with("processed=1 duplicates=0 "), "{last}");
        assert!(last.ends_with(" rejected=0"), "{last}");
        assert_eq!(db.number(STORED).await, 1);
    }

    pub(super) async fn what_always_fails_is_a_dead_letter(db: &Fresh, sqs: &Sqs<'_>) {
        let service = sqs.service_with(&[], "1");
        db.run("ALTER TABLE notifications ADD CHECK (cents <> 200)")
            .await;
        sqs.send(&[notice(200), notice_of(2, 100)]).await;
        sqs.until_empty().await;
        let last = service.stop();
        assert_eq!(last, "processed=1 duplicates=0 redelivered=5 rejected=0");
        let letters = sqs.receive("-dead").await;
        let bodies: Vec<_> = letters.iter().filter_map(Message::body).collect();
        assert_eq!(bodies, [notice(200)]);
    }

    pub(super) async fn no_notice_of_an_account_overtakes_one_that_fails(
        db: &Fresh,
        sqs: &Sqs<'_>,
    ) {
        let idle = sqs.service(&[]);
        idle.stop();
        db.run("ALTER TABLE notifications ADD CONSTRAINT none CHECK (cents <> 200)")
            .await;
        // Before it is started: it gets both at once.
        sqs.send(&[notice(200), notice_of(11, 100)]).await;
        let service = sqs.service(&["--batch", "10"]);
        service.says("again");
        let behind = service.says("again");
        assert!(behind.contains("one before it"), "{behind}");
        assert_eq!(db.number(STORED).await, 0);
        service.stop();
    }

    /// For longer than the visibility timeout: nobody else gets it, and nothing is counted.
    pub(super) async fn while_the_database_is_down_it_keeps_what_it_has(db: &Fresh, sqs: &Sqs<'_>) {
        let service = sqs.complaining("3");
        database::goes_down(db).await;
        sqs.send(&[notice(100)]).await;
        // A second each.
        for _ in 0..7 {
            service.complains("the database is not up");
        }
        assert!(sqs.receive("").await.is_empty());
        database::comes_back(db).await;
        sqs.until_empty().await;
        let last = service.stop();
        assert_eq!(last, "processed=1 duplicates=0 redelivered=0 rejected=0");
    }

    pub(super) async fn it_stops_while_the_database_is_down(db: &Fresh, sqs: &Sqs<'_>) {
        let service = sqs.complaining("1");
        database::goes_down(db).await;
        sqs.send(&[notice(100)]).await;
        service.complains("the database is not up");
        let last = service.stop();
        assert_eq!(last, "processed=0 duplicates=0 redelivered=0 rejected=0");
        database::comes_back(db).await;
        let next = sqs.service(&[]);
        sqs.until_empty().await;
        let last = next.stop();
        assert_eq!(last, "processed=1 duplicates=0 redelivered=0 rejected=0");
    }

    /// Also if they exist: a program that declares them otherwise is not refused.
    pub(super) async fn its_queues_keep_messages_for_fourteen_days(_: &Fresh, sqs: &Sqs<'_>) {
        for visibility in ["60", "30"] {
            sqs.service_with(&[], visibility).stop();
        }
        for suffix in ["", "-dead"] {
            let asked = sqs
                .client
                .get_queue_attributes()
                .queue_url(sqs.url(suffix).await)
                .attribute_names(MessageRetentionPeriod);
            let attributes = asked.send().await.unwrap().attributes.unwrap();
            assert_eq!(attributes[&MessageRetentionPeriod], "1209600");
        }
    }
}
