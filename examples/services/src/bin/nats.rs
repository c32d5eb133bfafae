//! A bank's notification service on NATS `JetStream`. Every transfer goes out by e-mail and by push.
//!
//! - Ours: `notify`, in one transaction with the key of each notice. A notice that comes again is a
//!   duplicate, and is acknowledged like the first.
//! - `JetStream`'s: a stream keeps each event for seven days. Of two durable consumers, one for each
//!   channel, each gives an event out until it is acknowledged: again after a nak, and again when
//!   `ACK_WAIT` has passed and nobody has said that it is still handled.
//! - Acknowledged: after the commit, never before. What is rejected, or comes after it was delivered
//!   `DELIVERIES` times, is first stored in the stream `…-dead`, and then terminated.
//!
//! ```text
//! cargo run -p idempotent-services --features nats --bin nats -- --publish 20
//! ```

use std::cell::RefCell;
use std::process::ExitCode;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::{AckKind, Context, Message, stream};
use futures_util::StreamExt as _;
use futures_util::future::try_join;
use idempotent_runtime::Permanent;
use idempotent_services::database;
use idempotent_services::hold::hold;
use idempotent_services::notify::{self, Channel, Notice, Order, TransferCompleted};
use idempotent_services::options::{Options, Program};
use idempotent_services::report::{self, Answer, Report};
use idempotent_services::stop::Stop;
use sqlx::PgPool;
use tokio::time::sleep;

const PROGRAM: Program = Program {
    name: "nats",
    about: "Customers are told once per transfer and channel, however often JetStream delivers.",
    broker: "nats://127.0.0.1:4222",
    needs: "",
};

/// After that many a message is a dead letter, whatever its error.
///
/// It is not the `max_deliver` of the consumer. `JetStream` gives such a message up, and counts it no
/// longer: after a crash at the last delivery all would look acknowledged, and a notice be lost.
const DELIVERIES: i64 = 5;

/// So long after a crash its messages come again.
const ACK_WAIT: Duration = Duration::from_secs(30);

/// Before what failed is delivered again, or asked for again.
const AGAIN: Duration = Duration::from_secs(1);

/// So late may a redelivery be: `notify` keeps its keys for longer. An older dead letter it may take
/// for a new event.
const MAX_AGE: Duration = Duration::from_hours(7 * 24);

/// A request for messages is made anew after that time: the server may have lost it.
const REQUEST: Duration = Duration::from_secs(10);

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
    let client = async_nats::connect(&options.broker).await?;
    let jetstream = async_nats::jetstream::new(client.clone());
    let [email, push] = declare(&jetstream, &options.name).await?;
    publish(&jetstream, &options).await?;
    let pruner = database::prune(&pool)?;
    let service = Service {
        pool,
        jetstream,
        report: RefCell::new(Report::new(options.quiet)),
        options,
    };
    let [mut stop, stop_email, stop_push] = [Stop::listen()?, Stop::listen()?, Stop::listen()?];
    println!("waiting for `{}`; Ctrl-C stops", service.options.name);
    try_join(
        service.consume(&email, Channel::Email, stop_email),
        service.consume(&push, Channel::Push, stop_push),
    )
    .await?;
    stop.asked().await;
    let end = async {
        pruner.stop().await;
        client.flush().await // the acknowledgements
    };
    stop.within_grace(end).await.unwrap_or(Ok(()))?;
    service.report.into_inner().finish();
    Ok(())
}

/// A stream of events with a consumer for each channel, and a stream of dead letters. What exists
/// is left as it is.
async fn declare(jetstream: &Context, name: &str) -> Result<[PullConsumer; 2], Failed> {
    let dead = stream::Config {
        name: format!("{name}-dead"),
        subjects: vec![format!("{name}.dead.*")],
        ..stream::Config::default()
    };
    jetstream.get_or_create_stream(dead).await?;
    let events = stream::Config {
        name: name.to_owned(),
        subjects: vec![format!("{name}.completed")],
        max_age: MAX_AGE,
        ..stream::Config::default()
    };
    let events = jetstream.get_or_create_stream(events).await?;
    let consumer = async |channel| {
        let durable = format!("{name}-{}", lower_case(channel));
        let config = pull::Config {
            durable_name: Some(durable.clone()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            ..pull::Config::default()
        };
        events.get_or_create_consumer(&durable, config).await
    };
    Ok([
        consumer(Channel::Email).await?,
        consumer(Channel::Push).await?,
    ])
}

fn lower_case(channel: Channel) -> String {
    channel.name().to_lowercase()
}

/// For the show: each event twice, as from a relay that crashed before it noted the first.
///
/// With a `Nats-Msg-Id` the stream would drop the second, but only for two minutes.
async fn publish(jetstream: &Context, options: &Options) -> Result<(), Failed> {
    let numbers: Vec<u32> = (1..=options.publish)
        .flat_map(|number| [number, number])
        .collect();
    for numbers in numbers.chunks(1000) {
        let mut stored = Vec::with_capacity(numbers.len());
        for number in numbers {
            let body = serde_json::to_vec(&TransferCompleted::sample(*number))?;
            let subject = format!("{}.completed", options.name);
            stored.push(jetstream.publish(subject, body.into()).await?);
        }
        for stored in stored {
            stored.await?;
        }
    }
    Ok(())
}

struct Service {
    pool: PgPool,
    jetstream: Context,
    options: Options,
    report: RefCell<Report>,
}

impl Service {
    async fn consume(
        &self,
        consumer: &PullConsumer,
        channel: Channel,
        mut stop: Stop,
    ) -> Result<(), Failed> {
        loop {
            // What there is, up to a batch, as soon as there is anything. Nothing is fetched ahead:
            // its `ACK_WAIT` would run while it waits for its turn.
            let fetch = consumer
                .fetch()
                .max_messages(self.options.batch)
                .expires(REQUEST);
            let mut fetched = match fetch.messages().await {
                Ok(fetched) => fetched,
                Err(why) => {
                    complain(&why);
                    sleep(AGAIN).await;
                    continue;
                }
            };
            let mut next = tokio::select! {
                biased;
                () = stop.asked() => return Ok(()),
                first = fetched.next() => first,
            };
            let handled = Box::pin(async {
                let mut messages = Vec::with_capacity(self.options.batch);
                while let Some(Ok(message)) = next {
                    messages.push(message);
                    next = fetched.next().await;
                }
                self.handle(consumer, channel, &messages).await?;
                // Of a request that a server has given up another may take the next.
                if let Some(Err(why)) = next {
                    complain(&why);
                    sleep(AGAIN).await;
                }
                Ok::<_, Failed>(())
            });
            // What is cut off is not acknowledged, and comes again.
            stop.within_grace(handled).await.unwrap_or(Ok(()))?;
        }
    }

    /// Handles a batch, and tells `JetStream` what became of each message.
    ///
    /// An acknowledgement is not waited for: if it is lost, the message comes again, and is a
    /// duplicate.
    async fn handle(
        &self,
        consumer: &PullConsumer,
        channel: Channel,
        messages: &[Message],
    ) -> Result<(), Failed> {
        let notices = messages.iter().map(|message| read(channel, message));
        let notices = notices.collect::<Result<_, Failed>>()?;
        let renew = async || {
            for message in messages {
                if let Err(why) = message.ack_with(AckKind::Progress).await {
                    complain(&why);
                }
            }
        };
        let handled = notify::handle(&self.pool, notices, Order::Any);
        let every = consumer.cached_info().config.ack_wait / 3;
        let results = hold(handled, every, renew).await;
        for (message, result) in messages.iter().zip(results) {
            let name = format!("{} {}", message.info()?.stream_sequence, channel.name());
            let answer = self.report.borrow_mut().told(&name, &result);
            match (answer, result) {
                (Answer::Reject, Err(why)) => {
                    self.dead_letter(channel, message, &why).await?;
                    message.ack_with(AckKind::Term).await?;
                }
                (Answer::Redeliver, _) => message.ack_with(AckKind::Nak(Some(AGAIN))).await?,
                _ => message.ack().await?,
            }
        }
        Ok(())
    }

    /// Stores a dead letter: it is safe when this returns. One that is too large with these headers
    /// is stored without its body, which stays where it came from for `MAX_AGE`.
    async fn dead_letter(
        &self,
        channel: Channel,
        message: &Message,
        why: &sqlx::Error,
    ) -> Result<(), Failed> {
        let subject = format!("{}.dead.{}", self.options.name, lower_case(channel));
        let info = message.info()?;
        let mut ours = HeaderMap::new();
        ours.insert("Why", report::why(why));
        ours.insert(
            "Origin",
            format!("{} {}", info.stream, info.stream_sequence),
        );
        let mut headers = ours.clone();
        for (name, values) in message.headers.iter().flat_map(HeaderMap::iter) {
            // Those of NATS were told to the stream that it came from.
            if name.to_string().starts_with("Nats-") {
                continue;
            }
            for value in values {
                headers.append(name.clone(), value.clone());
            }
        }
        let whole = message.payload.clone();
        let mut stored = self
            .jetstream
            .publish_with_headers(subject.clone(), headers, whole)
            .await;
        if let Err(why) = &stored
            && why.kind() == PublishErrorKind::MaxPayloadExceeded
        {
            complain(why);
            let nothing = Vec::new().into();
            stored = self
                .jetstream
                .publish_with_headers(subject, ours, nothing)
                .await;
        }
        stored?.await?;
        Ok(())
    }
}

fn complain(why: &impl std::fmt::Display) {
    eprintln!("{}: {why}", PROGRAM.name);
}

/// Reads a notice. One that was delivered too often is not tried again: it may be what crashes us.
fn read(channel: Channel, message: &Message) -> Result<sqlx::Result<Notice>, Failed> {
    if message.info()?.delivered > DELIVERIES {
        let why = format!("it was delivered {DELIVERIES} times");
        return Ok(Err(sqlx::Error::Encode(Permanent::new(why).into())));
    }
    Ok(notify::read(&message.payload).map(|event| Notice { event, channel }))
}
