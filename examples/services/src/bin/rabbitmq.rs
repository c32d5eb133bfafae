//! A bank's notification service on RabbitMQ. Every transfer goes out by e-mail and by push.
//!
//! - Ours: `notify`, in one transaction with the key of each notice. A notice that comes again is a
//!   duplicate, and is acknowledged like the first.
//! - RabbitMQ's: it keeps a message until it is acknowledged, and delivers it again when the
//!   connection is cut or it is rejected with `requeue`. It counts that, in all versions: what was
//!   delivered again `rabbit::DELIVERIES` times, or is rejected without `requeue`, it moves to the
//!   queue `….dead`. (A nack with `requeue` does not count from 4.3 on: what always fails would come
//!   for ever.)
//! - Acknowledged: after the commit, never before.
//!
//! ```text
//! cargo run -p idempotent-services --features rabbitmq --bin rabbitmq -- --publish 20
//! ```

use std::process::ExitCode;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::select;
use idempotent_runtime::Verdict;
use idempotent_services::coarse;
use idempotent_services::database;
use idempotent_services::notify::{self, Channel, Notice, Order, TransferCompleted};
use idempotent_services::options::{Options, Program};
use idempotent_services::rabbit;
use idempotent_services::report::{Answer, Report};
use idempotent_services::stop::Stop;
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, BasicRejectOptions};
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties, Consumer};
use sqlx::PgPool;
use tokio::time::sleep;

const PROGRAM: Program = Program {
    name: "rabbitmq",
    about: "Customers are told once per transfer and channel, however often RabbitMQ delivers.",
    broker: "amqp://guest:guest@127.0.0.1:5672/%2f",
    needs: "",
};

/// Before what failed is given back: RabbitMQ delivers it again at once.
const AGAIN: Duration = Duration::from_secs(1);

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
    let connection = Connection::connect(&options.broker, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    rabbit::declare(&channel, &options.name).await?;
    publish(&channel, &options).await?;
    if options.publish > 0 && !options.quiet {
        compare_with_a_coarse_key(&pool).await?;
    }
    let pruner = database::prune(&pool)?;
    let mut report = Report::new(options.quiet);
    let mut stop = Stop::listen()?;
    consume(&channel, &pool, &options, &mut report, &mut stop).await?;
    let end = async {
        pruner.stop().await;
        // What was delivered and not acknowledged goes back into its queue.
        connection.close(200, "stopped".into()).await
    };
    stop.within_grace(end).await.unwrap_or(Ok(()))?;
    report.finish();
    Ok(())
}

/// For the show: each event twice, as from a relay that crashed before it noted the first.
async fn publish(channel: &lapin::Channel, options: &Options) -> Result<(), Failed> {
    let numbers = (1..=options.publish).flat_map(|number| [number, number]);
    let bodies = numbers.map(|number| serde_json::to_vec(&TransferCompleted::sample(number)));
    let bodies = bodies.collect::<Result<Vec<_>, _>>()?;
    Ok(rabbit::publish(channel, &options.name, &bodies).await?)
}

/// For the show: what a key without the channel would do to each event.
async fn compare_with_a_coarse_key(pool: &PgPool) -> sqlx::Result<()> {
    for (channel, verdict) in coarse::rehearse(pool).await? {
        let fate = match verdict {
            Verdict::Processed => "is sent",
            Verdict::Duplicate => "is taken for a duplicate, and never sent",
        };
        println!("with the key `event.id` alone, {} {fate}", channel.name());
    }
    Ok(())
}

async fn consume(
    channel: &lapin::Channel,
    pool: &PgPool,
    options: &Options,
    report: &mut Report,
    stop: &mut Stop,
) -> Result<(), Failed> {
    // RabbitMQ sends on while a batch is being handled. What it has sent counts as delivered when the
    // process dies, before 4.3: so many messages are dead letters with the one that kills it each time.
    let unacknowledged = u16::try_from(2 * options.batch).unwrap_or(u16::MAX);
    channel
        .basic_qos(unacknowledged, BasicQosOptions::default())
        .await?;
    let [email, push] = [
        subscribe(channel, &options.name, Channel::Email).await?,
        subscribe(channel, &options.name, Channel::Push).await?,
    ];
    let deliveries = select(
        email.map(|delivery| (Channel::Email, delivery)),
        push.map(|delivery| (Channel::Push, delivery)),
    );
    let mut batches = deliveries.ready_chunks(options.batch);
    println!("waiting for `{}`; Ctrl-C stops", options.name);
    loop {
        let batch = tokio::select! {
            biased;
            () = stop.asked() => return Ok(()),
            batch = batches.next() => batch.ok_or("RabbitMQ has ended the subscription")?,
        };
        let mut deliveries = Vec::with_capacity(batch.len());
        for (to, delivery) in batch {
            deliveries.push((to, delivery?));
        }
        // What is cut off is not acknowledged, and comes again.
        let handled = handle(pool, deliveries, report);
        stop.within_grace(handled).await.unwrap_or(Ok(()))?;
    }
}

async fn subscribe(channel: &lapin::Channel, name: &str, to: Channel) -> lapin::Result<Consumer> {
    channel
        .basic_consume(
            rabbit::queue(name, to),
            "".into(),
            BasicConsumeOptions::default(),
            FieldTable::default(),
        )
        .await
}

/// Handles a batch, and tells RabbitMQ what became of each delivery.
///
/// If the database is down for longer than RabbitMQ waits for an answer (30 minutes), it closes the
/// channel, which ends this program. Started again, it takes no message before the database is up.
async fn handle(
    pool: &PgPool,
    deliveries: Vec<(Channel, Delivery)>,
    report: &mut Report,
) -> Result<(), Failed> {
    let read = |(channel, delivery): &(Channel, Delivery)| {
        notify::read(&delivery.data).map(|event| Notice {
            event,
            channel: *channel,
        })
    };
    let notices = deliveries.iter().map(read).collect();
    let results = notify::handle(pool, notices, Order::Any).await;
    let mut again = Vec::new();
    for ((channel, delivery), result) in deliveries.iter().zip(results) {
        let name = format!("{} {}", delivery.delivery_tag, channel.name());
        match report.told(&name, &result) {
            Answer::Acknowledge => _ = delivery.ack(BasicAckOptions::default()).await?,
            Answer::Redeliver => again.push(delivery),
            Answer::Reject => _ = delivery.reject(BasicRejectOptions::default()).await?,
        }
    }
    if !again.is_empty() {
        sleep(AGAIN).await;
    }
    for delivery in again {
        delivery
            .reject(BasicRejectOptions { requeue: true })
            .await?;
    }
    Ok(())
}
