//! The notification service on SQS.

use std::process::Command;

use aws_config::BehaviorVersion;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{Credentials, Region};
use aws_sdk_sqs::types::QueueAttributeName::{
    ApproximateNumberOfMessages, ApproximateNumberOfMessagesNotVisible,
};
use idempotent_services::notify::{Channel, Notice, TransferCompleted};

use crate::running::{Fresh, Running, counts, in_fresh_database, server, until};

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
    what_is_shown_again_in_the_middle_of_a_handler_waits_and_is_a_duplicate,
    what_can_never_be_handled_is_a_dead_letter,
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
        let mut command: Command = self.db.program(env!("CARGO_BIN_EXE_sqs"), &server("SQS"));
        command.args(args).env("VISIBILITY_SECONDS", visibility);
        command.env("AWS_ACCESS_KEY_ID", "test");
        command.env("AWS_SECRET_ACCESS_KEY", "test");
        command.env("AWS_REGION", "us-east-1");
        Running::start(command, "waiting for")
    }

    async fn url(&self, suffix: &str) -> String {
        let name = format!("{}{suffix}.fifo", self.db.name);
        let url = self.client.get_queue_url().queue_name(name).send().await;
        url.unwrap().queue_url.unwrap()
    }

    async fn send(&self, bodies: &[String]) {
        let url = self.url("").await;
        for (number, body) in bodies.iter().enumerate() {
            self.client
                .send_message()
                .queue_url(&url)
                .message_body(body)
                .message_group_id("test")
                .message_deduplication_id(format!("{number}"))
                .send()
                .await
                .unwrap();
        }
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
    let notice = Notice {
        event: TransferCompleted {
            cents,
            ..TransferCompleted::sample(1)
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

    /// The first is held up until its message is shown again, to another process.
    pub(super) async fn what_is_shown_again_in_the_middle_of_a_handler_waits_and_is_a_duplicate(
        db: &Fresh,
        sqs: &Sqs<'_>,
    ) {
        let first = sqs.service_with(&[], "1");
        let second = sqs.service_with(&[], "1");
        let mut held = db.pool.begin().await.unwrap();
        sqlx::query("LOCK TABLE notifications")
            .execute(&mut *held)
            .await
            .unwrap();
        sqs.send(&[notice(100)]).await;
        let waiting = "SELECT count(*) FROM pg_stat_activity \
             WHERE datname = current_database() AND wait_event_type = 'Lock'";
        until("both have the message", async || {
            db.number(waiting).await == 2
        })
        .await;
        held.rollback().await.unwrap();
        sqs.until_empty().await;
        let [first, second] = [first.stop(), second.stop()].map(|last| counts(&last));
        assert_eq!(first.processed + second.processed, 1);
        assert!(first.duplicates + second.duplicates >= 1);
        assert_eq!(db.number(STORED).await, 1);
    }

    pub(super) async fn what_can_never_be_handled_is_a_dead_letter(db: &Fresh, sqs: &Sqs<'_>) {
        let service = sqs.service(&["--batch", "10"]);
        sqs.send(&[notice(0), "{".to_owned(), notice(100)]).await;
        sqs.until_empty().await;
        assert_eq!(sqs.count("-dead").await, 2);
        let last = service.stop();
        assert_eq!(last, "processed=1 duplicates=0 redelivered=0 rejected=2");
        assert_eq!(db.number(STORED).await, 1);
    }
}
