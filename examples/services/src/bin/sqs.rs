//! A bank's notification service on Amazon SQS. Every transfer goes out by e-mail and by push.
//!
//! - Ours: `notify`, in one transaction with the key of each notice. The key is made of the event, not
//!   of SQS's message id or receipt handle: the producer may send an event again, which a FIFO queue
//!   takes for another message after five minutes.
//! - SQS's: it hides a message while it is handled, for the visibility timeout, and shows it again
//!   unless it is deleted in time. After `DELIVERIES` times it moves it to the dead-letter queue.
//! - Acknowledged, that is deleted: after the commit, never before. If that fails, or comes too late,
//!   the message comes again and is a duplicate.
//!
//! ```text
//! moto_server & AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=x AWS_REGION=us-east-1 \
//!     cargo run -p idempotent-services --features sqs --bin sqs -- --publish 20
//! ```

use std::env;
use std::process::ExitCode;

use aws_config::BehaviorVersion;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, QueueAttributeName};
use idempotent_services::notify::{self, Channel, Notice, TransferCompleted};
use idempotent_services::options::{Options, Program};
use idempotent_services::report::{Answer, Report};
use idempotent_services::stop::Stop;
use sqlx::PgPool;

const PROGRAM: Program = Program {
    name: "sqs",
    about: "Customers are told once per transfer and channel, however often SQS delivers.",
    broker: "http://127.0.0.1:5000",
};

/// After that many a message is a dead letter, whatever its error.
const DELIVERIES: u32 = 5;

/// SQS gives no more at once.
const MOST: usize = 10;

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
    let pool = notify::database(&options.database).await?;
    // Credentials and region are found as in all programs for AWS. On AWS itself leave the
    // endpoint out.
    let config = aws_config::defaults(BehaviorVersion::latest())
        .endpoint_url(&options.broker)
        .load()
        .await;
    let client = Client::new(&config);
    let queues = Queues::declare(&client, &options.name).await?;
    publish(&client, &queues, &options).await?;
    let mut report = Report::new(options.quiet);
    consume(&client, &queues, &pool, &options, &mut report).await?;
    report.finish();
    Ok(())
}

/// The URLs of the queues.
struct Queues {
    notices: String,
    dead: String,
}

impl Queues {
    /// A FIFO queue, and another for its dead letters. What exists is left as it is.
    async fn declare(client: &Client, name: &str) -> Result<Self, Failed> {
        let dead = client
            .create_queue()
            .queue_name(format!("{name}-dead.fifo"))
            .attributes(QueueAttributeName::FifoQueue, "true")
            .send()
            .await?
            .queue_url
            .ok_or("SQS names no dead-letter queue")?;
        let arn = client
            .get_queue_attributes()
            .queue_url(&dead)
            .attribute_names(QueueAttributeName::QueueArn)
            .send()
            .await?
            .attributes
            .and_then(|mut attributes| attributes.remove(&QueueAttributeName::QueueArn))
            .ok_or("SQS does not name its dead-letter queue")?;
        let redrive =
            serde_json::json!({ "deadLetterTargetArn": arn, "maxReceiveCount": DELIVERIES });
        // Longer than the slowest handler: a message that is shown again too early is handled twice,
        // which costs time, and waits for the first.
        let hidden = env::var("VISIBILITY_SECONDS").unwrap_or_else(|_| "60".to_owned());
        let notices = client
            .create_queue()
            .queue_name(format!("{name}.fifo"))
            .attributes(QueueAttributeName::FifoQueue, "true")
            .attributes(QueueAttributeName::RedrivePolicy, redrive.to_string())
            .attributes(QueueAttributeName::VisibilityTimeout, hidden)
            .send()
            .await?
            .queue_url
            .ok_or("SQS names no queue")?;
        Ok(Self { notices, dead })
    }
}

/// For the show: each event on each channel twice, as from a producer that got no answer, and sends
/// it again after SQS has forgotten the first.
async fn publish(client: &Client, queues: &Queues, options: &Options) -> Result<(), Failed> {
    for number in 1..=options.publish {
        let event = TransferCompleted::sample(number);
        for (channel, time) in [
            (Channel::Email, 1),
            (Channel::Push, 1),
            (Channel::Email, 2),
            (Channel::Push, 2),
        ] {
            let notice = Notice {
                event: event.clone(),
                channel,
            };
            client
                .send_message()
                .queue_url(&queues.notices)
                .message_body(serde_json::to_string(&notice)?)
                .message_group_id(&event.account)
                .message_deduplication_id(format!("{}-{}-{time}", event.id, channel.name()))
                .send()
                .await?;
        }
    }
    Ok(())
}

async fn consume(
    client: &Client,
    queues: &Queues,
    pool: &PgPool,
    options: &Options,
    report: &mut Report,
) -> Result<(), Failed> {
    let most = i32::try_from(options.batch.min(MOST))?;
    let mut stop = Stop::listen()?;
    println!("waiting for `{}`; Ctrl-C stops", options.name);
    loop {
        let receive = client
            .receive_message()
            .queue_url(&queues.notices)
            .max_number_of_messages(most)
            .wait_time_seconds(20);
        // Between two batches only: what is begun is finished.
        let messages = tokio::select! {
            received = receive.send() => received?.messages.unwrap_or_default(),
            () = stop.asked() => return Ok(()),
        };
        handle(client, queues, pool, messages, report).await?;
    }
}

/// Handles a batch, and tells SQS what became of each message.
async fn handle(
    client: &Client,
    queues: &Queues,
    pool: &PgPool,
    messages: Vec<Message>,
    report: &mut Report,
) -> Result<(), Failed> {
    let read = |message: &Message| notify::read(message.body().unwrap_or_default().as_bytes());
    let notices = messages.iter().map(read).collect();
    let results = notify::handle(pool, notices).await;
    for (message, result) in messages.iter().zip(results) {
        let name = message.message_id().unwrap_or_default();
        match report.told(name, &result) {
            Answer::Acknowledge => delete(client, queues, message).await,
            // It is shown again when the visibility timeout ends.
            Answer::Redeliver => {}
            // SQS knows no rejection: it moves what was received too often, and nothing sooner.
            Answer::Reject => {
                client
                    .send_message()
                    .queue_url(&queues.dead)
                    .message_body(message.body().unwrap_or_default())
                    .message_group_id("rejected")
                    .message_deduplication_id(name)
                    .send()
                    .await?;
                delete(client, queues, message).await;
            }
        }
    }
    Ok(())
}

/// What cannot be deleted comes again, and is a duplicate.
async fn delete(client: &Client, queues: &Queues, message: &Message) {
    let deleted = client
        .delete_message()
        .queue_url(&queues.notices)
        .receipt_handle(message.receipt_handle().unwrap_or_default())
        .send()
        .await;
    if let Err(error) = deleted {
        eprintln!(
            "not deleted: {}",
            aws_sdk_sqs::error::DisplayErrorContext(error)
        );
    }
}
