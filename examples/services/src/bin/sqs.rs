//! A bank's notification service on Amazon SQS. Every transfer goes out by e-mail and by push.
//!
//! - Ours: `notify`, in one transaction with the key of each notice. The key is made of the event, not
//!   of SQS's message id or receipt handle: the producer may send an event again, which a FIFO queue
//!   takes for another message after five minutes.
//! - SQS's: it hides a message while it is handled, for the visibility timeout, and shows it again
//!   unless it is deleted in time. After `DELIVERIES` times it moves it to the dead-letter queue. A
//!   queue keeps a message for 14 days, the longest that SQS knows.
//! - Acknowledged, that is deleted: after the commit, never before. If that fails, or comes too late,
//!   the message comes again and is a duplicate. Of the same account, none behind one that fails is
//!   handled before it: those that were received with it count as received with it, too. With
//!   `--batch 1` there are none.
//!
//! ```text
//! moto_server & AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=x AWS_REGION=us-east-1 \
//!     cargo run -p idempotent-services --features sqs --bin sqs -- --publish 20
//! ```

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{DisplayErrorContext, SdkError};
use aws_sdk_sqs::operation::get_queue_url::GetQueueUrlError;
use aws_sdk_sqs::types::{
    Message, MessageAttributeValue, MessageSystemAttributeName, QueueAttributeName,
};
use idempotent_services::database;
use idempotent_services::hold::hold;
use idempotent_services::notify::{self, Channel, Notice, Order, TransferCompleted};
use idempotent_services::options::{Options, Program};
use idempotent_services::report::{self, Answer, Report};
use idempotent_services::stop::Stop;
use sqlx::PgPool;

const PROGRAM: Program = Program {
    name: "sqs",
    about: "Customers are told once per transfer and channel, however often SQS delivers.",
    broker: "http://127.0.0.1:5000",
    needs: "AWS_REGION and credentials, as all programs for AWS: moto takes any, for instance\n\
            AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=x\n\n",
};

/// After that many a message is a dead letter, whatever its error.
const DELIVERIES: u32 = 5;

/// SQS gives no more at once.
const MOST: usize = 10;

/// How long SQS may wait for a message. A request is not cut off when the service stops: messages
/// that are on their way would be hidden, and counted as received.
const WAIT_SECONDS: i32 = 3;

/// So long are messages kept, and dead letters: `notify` keeps its keys for longer than both.
const RETENTION_SECONDS: &str = "1209600";

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
    // Credentials and region are found as in all programs for AWS. On AWS itself leave the
    // endpoint out.
    let config = aws_config::defaults(BehaviorVersion::latest())
        .endpoint_url(&options.broker)
        .load()
        .await;
    let client = Client::new(&config);
    let queues = Queues::declare(&client, &options.name).await?;
    publish(&client, &queues, &options).await?;
    let pruner = database::prune(&pool)?;
    let mut report = Report::new(options.quiet);
    let mut stop = Stop::listen()?;
    consume(&client, &queues, &pool, &options, &mut report, &mut stop).await?;
    stop.within_grace(pruner.stop()).await;
    report.finish();
    Ok(())
}

/// A FIFO queue, and another for its dead letters.
struct Queues {
    notices: String,
    dead: String,
    /// How long a message is hidden.
    timeout: Duration,
}

impl Queues {
    /// What exists is left as it is.
    async fn declare(client: &Client, name: &str) -> Result<Self, Failed> {
        use QueueAttributeName::{QueueArn, RedrivePolicy, VisibilityTimeout};

        let dead = queue(client, &format!("{name}-dead.fifo"), []).await?;
        let arn = attribute(client, &dead, QueueArn).await?;
        let redrive =
            serde_json::json!({ "deadLetterTargetArn": arn, "maxReceiveCount": DELIVERIES });
        // So long after a crash its messages come again.
        let timeout = env::var("VISIBILITY_SECONDS").unwrap_or_else(|_| "60".to_owned());
        let attributes = [
            (RedrivePolicy, redrive.to_string()),
            (VisibilityTimeout, timeout),
        ];
        let notices = queue(client, &format!("{name}.fifo"), attributes).await?;
        let timeout = attribute(client, &notices, VisibilityTimeout).await?;
        Ok(Self {
            notices,
            dead,
            timeout: Duration::from_secs(timeout.parse()?),
        })
    }
}

/// The URL of a FIFO queue, which is made unless it exists.
async fn queue<const N: usize>(
    client: &Client,
    name: &str,
    attributes: [(QueueAttributeName, String); N],
) -> Result<String, Failed> {
    let url = match client.get_queue_url().queue_name(name).send().await {
        Ok(found) => found.queue_url,
        Err(error) if is_no_queue(&error) => {
            let mut create = client
                .create_queue()
                .queue_name(name)
                .attributes(QueueAttributeName::FifoQueue, "true")
                .attributes(
                    QueueAttributeName::MessageRetentionPeriod,
                    RETENTION_SECONDS,
                );
            for (name, value) in attributes {
                create = create.attributes(name, value);
            }
            create.send().await?.queue_url
        }
        Err(error) => return Err(error.into()),
    };
    Ok(url.ok_or("SQS names no queue")?)
}

fn is_no_queue(error: &SdkError<GetQueueUrlError>) -> bool {
    let service = error.as_service_error();
    service.is_some_and(GetQueueUrlError::is_queue_does_not_exist)
}

async fn attribute(
    client: &Client,
    queue: &str,
    name: QueueAttributeName,
) -> Result<String, Failed> {
    let asked = client.get_queue_attributes().queue_url(queue);
    let found = asked.attribute_names(name.clone()).send().await?.attributes;
    let value = found.and_then(|mut attributes| attributes.remove(&name));
    Ok(value.ok_or_else(|| format!("SQS tells no {name} of {queue}"))?)
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
    stop: &mut Stop,
) -> Result<(), Failed> {
    let most = i32::try_from(options.batch.min(MOST))?;
    println!("waiting for `{}`; Ctrl-C stops", options.name);
    while !stop.is_asked() {
        let receive = client
            .receive_message()
            .queue_url(&queues.notices)
            .max_number_of_messages(most)
            .message_attribute_names("All")
            .message_system_attribute_names(MessageSystemAttributeName::MessageGroupId)
            .wait_time_seconds(WAIT_SECONDS);
        let received = Box::pin(async {
            let messages = receive.send().await?.messages.unwrap_or_default();
            handle(client, queues, pool, messages, report).await
        });
        // What is cut off is not deleted, and comes again.
        stop.within_grace(received).await.unwrap_or(Ok(()))?;
    }
    Ok(())
}

/// Handles a batch, and tells SQS what became of each message. Meanwhile they stay hidden, for twelve
/// hours at most.
async fn handle(
    client: &Client,
    queues: &Queues,
    pool: &PgPool,
    messages: Vec<Message>,
    report: &mut Report,
) -> Result<(), Failed> {
    let read = |message: &Message| notify::read(message.body().unwrap_or_default().as_bytes());
    let notices = messages.iter().map(read).collect();
    let handled = notify::handle(pool, notices, Order::ByAccount);
    let renew = async || {
        for message in &messages {
            hide(client, queues, message).await;
        }
    };
    let results = hold(handled, queues.timeout / 3, renew).await;
    for (message, result) in messages.iter().zip(results) {
        let name = message.message_id().unwrap_or_default();
        match (report.told(name, &result), result) {
            // SQS knows no rejection: it moves what was received too often, and nothing sooner.
            (Answer::Reject, Err(why)) => {
                dead_letter(client, queues, message, &why).await?;
                delete(client, queues, message).await;
            }
            // It is shown again when the visibility timeout ends.
            (Answer::Redeliver, _) => {}
            _ => delete(client, queues, message).await,
        }
    }
    Ok(())
}

/// Stores a dead letter, in the group that it was in. `why` is left out if it is too large with it.
async fn dead_letter(
    client: &Client,
    queues: &Queues,
    message: &Message,
    why: &sqlx::Error,
) -> Result<(), Failed> {
    let group = MessageSystemAttributeName::MessageGroupId;
    let group = message.attributes().and_then(|known| known.get(&group));
    let letter = client
        .send_message()
        .queue_url(&queues.dead)
        .message_body(message.body().unwrap_or_default())
        .set_message_attributes(message.message_attributes().cloned())
        .message_group_id(group.ok_or("SQS tells no group of a message")?)
        .message_deduplication_id(message.message_id().unwrap_or_default());
    let text = MessageAttributeValue::builder()
        .data_type("String")
        .string_value(report::why(why))
        .build()?;
    let sent = letter.clone().message_attributes("why", text).send().await;
    if let Err(SdkError::ServiceError(_)) = &sent {
        letter.send().await?;
        return Ok(());
    }
    sent?;
    Ok(())
}

/// Keeps it hidden while it is handled.
async fn hide(client: &Client, queues: &Queues, message: &Message) {
    let hidden = client
        .change_message_visibility()
        .queue_url(&queues.notices)
        .receipt_handle(message.receipt_handle().unwrap_or_default())
        .visibility_timeout(i32::try_from(queues.timeout.as_secs()).unwrap_or(i32::MAX))
        .send()
        .await;
    if let Err(error) = hidden {
        eprintln!("not hidden: {}", DisplayErrorContext(error));
    }
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
        eprintln!("not deleted: {}", DisplayErrorContext(error));
    }
}
