//! `RabbitMQ`: the exchange, its queues, and who listens.

use std::time::Duration;

use lapin::options::{
    BasicConsumeOptions, BasicQosOptions, ExchangeDeclareOptions, QueueBindOptions,
    QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Connection, ConnectionProperties, Consumer, ExchangeKind, Queue};
use xtask::chaos::Fault;

use crate::entry::Channel;
use crate::options::Options;

/// No limit, as it is by default before 4.0: an entry that meets hundreds of kills is not at fault,
/// and a queue without dead letters drops what has reached its limit.
const DELIVERIES: i64 = 1_000_000;

/// How many messages a consumer holds that it has not acknowledged.
const PREFETCH: u16 = 64;

/// A connection, and the only channel on it.
pub(crate) struct Line {
    _connection: Connection,
    pub(crate) channel: lapin::Channel,
}

impl Line {
    pub(crate) async fn open(options: &Options) -> lapin::Result<Self> {
        let properties = ConnectionProperties::default();
        let connection = Connection::connect(&options.broker, properties).await?;
        let channel = connection.create_channel().await?;
        Ok(Self {
            _connection: connection,
            channel,
        })
    }

    /// A fan-out exchange, and a quorum queue for each channel.
    pub(crate) async fn declare(&self, name: &str) -> lapin::Result<()> {
        let exchange = ExchangeDeclareOptions {
            durable: true,
            ..ExchangeDeclareOptions::default()
        };
        self.channel
            .exchange_declare(
                name.into(),
                ExchangeKind::Fanout,
                exchange,
                FieldTable::default(),
            )
            .await?;
        let mut quorum = FieldTable::default();
        quorum.insert(
            "x-queue-type".into(),
            AMQPValue::LongString("quorum".into()),
        );
        quorum.insert(
            "x-delivery-limit".into(),
            AMQPValue::LongLongInt(DELIVERIES),
        );
        let durable = QueueDeclareOptions {
            durable: true,
            ..QueueDeclareOptions::default()
        };
        for to in Channel::ALL {
            let queue = queue(name, to);
            self.channel
                .queue_declare(queue.clone(), durable, quorum.clone())
                .await?;
            self.channel
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

    /// How many messages and consumers a queue has. While its leader does not answer `RabbitMQ`
    /// says that there is none of both.
    pub(crate) async fn look(&self, name: &str, to: Channel) -> lapin::Result<Queue> {
        let passive = QueueDeclareOptions {
            passive: true,
            durable: true,
            ..QueueDeclareOptions::default()
        };
        self.channel
            .queue_declare(queue(name, to), passive, FieldTable::default())
            .await
    }

    /// Takes messages from a queue.
    pub(crate) async fn subscribe(
        &self,
        options: &Options,
        to: Channel,
    ) -> lapin::Result<Consumer> {
        self.channel
            .basic_qos(PREFETCH, BasicQosOptions::default())
            .await?;
        let subscription = BasicConsumeOptions {
            // The usual way to acknowledge too early: RabbitMQ does it when it has sent a message.
            no_ack: options.fault == Some(Fault::EarlyAck),
            ..BasicConsumeOptions::default()
        };
        self.channel
            .basic_consume(
                queue(&options.name, to),
                "".into(),
                subscription,
                FieldTable::default(),
            )
            .await
    }
}

/// Between two attempts to reach a broker that may be down.
pub(crate) async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

fn queue(name: &str, channel: Channel) -> ShortString {
    format!("{name}.{}", channel.name()).into()
}
