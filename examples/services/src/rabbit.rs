//! What the programs on RabbitMQ share: exchange, queues, publishing.

use lapin::options::{
    BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions, QueueBindOptions,
    QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Confirmation, ExchangeKind};

use crate::notify::Channel;

/// After that many a message is a dead letter, whatever its error. All that declare a queue must say
/// the same, or `RabbitMQ` refuses it.
pub const DELIVERIES: i64 = 5;

/// A fan-out exchange, a queue for each channel, and one for dead letters. Quorum queues count
/// deliveries: after [`DELIVERIES`] a message is a dead letter. What exists is left as it is.
///
/// # Errors
///
/// The connection is cut, or a queue of the name is another.
pub async fn declare(channel: &lapin::Channel, name: &str) -> lapin::Result<()> {
    let durable = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    let dead = format!("{name}.dead");
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    channel
        .queue_declare(dead.as_str().into(), durable, arguments.clone())
        .await?;
    arguments.insert(
        "x-delivery-limit".into(),
        AMQPValue::LongLongInt(DELIVERIES),
    );
    arguments.insert("x-dead-letter-exchange".into(), text(""));
    arguments.insert("x-dead-letter-routing-key".into(), text(&dead));
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
            .queue_declare(queue.clone(), durable, arguments.clone())
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

fn text(text: &str) -> AMQPValue {
    AMQPValue::LongString(text.into())
}

/// Publishes, and waits until RabbitMQ has all of it.
///
/// # Errors
///
/// The connection is cut, or RabbitMQ refuses one: some may be published.
pub async fn publish(
    channel: &lapin::Channel,
    name: &str,
    bodies: &[Vec<u8>],
) -> lapin::Result<()> {
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await?;
    let properties = BasicProperties::default().with_delivery_mode(2); // kept on disk
    let mut confirms = Vec::with_capacity(bodies.len());
    for body in bodies {
        let confirm = channel
            .basic_publish(
                name.into(),
                "".into(),
                BasicPublishOptions::default(),
                body,
                properties.clone(),
            )
            .await?;
        confirms.push(confirm);
    }
    for confirm in confirms {
        if let Confirmation::Nack(_) = confirm.await? {
            return Err(std::io::Error::other("RabbitMQ refused a message").into());
        }
    }
    Ok(())
}
