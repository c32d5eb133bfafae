//! What the programs on RabbitMQ share: exchange, queues, publishing.

use lapin::options::{
    BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions, QueueBindOptions,
    QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Confirmation, ExchangeKind};

use crate::notify::Channel;

/// So often a message is delivered again: then it is a dead letter, whatever its error. All that
/// declare a queue must say the same, or `RabbitMQ` refuses it.
pub const DELIVERIES: i64 = 5;

/// However often somebody looks at a dead letter, it stays. From `RabbitMQ` 4.0 on a quorum queue has a
/// limit of 20 deliveries; the `-1` that lifts it is refused by versions before. A classic queue has no
/// limit, and lies on one node only.
const LOOKS: i64 = 1_000_000_000;

/// A fan-out exchange, a queue for each channel, and one for dead letters. Quorum queues count
/// deliveries: after [`DELIVERIES`] a message is a dead letter. It leaves its queue when the other
/// has it, and not before: that is `at-least-once`, for which `RabbitMQ` asks for `reject-publish`.
///
/// # Errors
///
/// The connection is cut, or a queue of the name has other arguments.
pub async fn declare(channel: &lapin::Channel, name: &str) -> lapin::Result<()> {
    let durable = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    let dead = format!("{name}.dead");
    let dead_letters = arguments([
        ("x-queue-type", text("quorum")),
        ("x-delivery-limit", AMQPValue::LongLongInt(LOOKS)),
    ]);
    channel
        .queue_declare(dead.as_str().into(), durable, dead_letters)
        .await?;
    let notices = arguments([
        ("x-queue-type", text("quorum")),
        ("x-delivery-limit", AMQPValue::LongLongInt(DELIVERIES)),
        ("x-dead-letter-exchange", text("")),
        ("x-dead-letter-routing-key", text(&dead)),
        ("x-dead-letter-strategy", text("at-least-once")),
        ("x-overflow", text("reject-publish")),
    ]);
    let exchange = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    channel
        .exchange_declare(
            name.into(),
            ExchangeKind::Fanout,
            exchange,
            FieldTable::default(),
        )
        .await?;
    for to in Channel::ALL {
        let queue = queue(name, to);
        channel
            .queue_declare(queue.clone(), durable, notices.clone())
            .await?;
        channel
            .queue_bind(
                queue,
                name.into(),
                "".into(),
                QueueBindOptions::default(),
                FieldTable::default(),
            )
            .await?;
    }
    Ok(())
}

/// The queue of the notices for a channel.
#[must_use]
pub fn queue(name: &str, channel: Channel) -> ShortString {
    format!("{name}.{}", channel.name().to_lowercase()).into()
}

fn arguments<const N: usize>(arguments: [(&str, AMQPValue); N]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in arguments {
        table.insert(name.into(), value);
    }
    table
}

fn text(text: &str) -> AMQPValue {
    AMQPValue::LongString(text.into())
}

/// Publishes, and waits until RabbitMQ has all of it.
///
/// # Errors
///
/// The connection is cut, or RabbitMQ refuses one, or has no queue for it: some may be published.
/// That one queue of two is missing, it does not tell.
pub async fn publish(
    channel: &lapin::Channel,
    name: &str,
    bodies: &[Vec<u8>],
) -> lapin::Result<()> {
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await?;
    // Without it RabbitMQ confirms what goes into no queue.
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    let properties = BasicProperties::default().with_delivery_mode(2); // kept on disk
    let mut confirms = Vec::with_capacity(bodies.len());
    for body in bodies {
        let confirm = channel
            .basic_publish(name.into(), "".into(), options, body, properties.clone())
            .await?;
        confirms.push(confirm);
    }
    for confirm in confirms {
        let problem = match confirm.await? {
            Confirmation::Ack(None) => continue,
            Confirmation::Ack(Some(_)) => "RabbitMQ has no queue for a message",
            Confirmation::Nack(_) => "RabbitMQ refused a message",
            Confirmation::NotRequested => "RabbitMQ was not asked to confirm",
        };
        return Err(std::io::Error::other(problem).into());
    }
    Ok(())
}
