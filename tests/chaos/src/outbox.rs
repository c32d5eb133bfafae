//! The publisher: each event in its order, again and again until it is confirmed.

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, Confirmation};

use crate::broker::{Line, pause};
use crate::entry::{Channel, Order};
use crate::options::Options;
use crate::say;

/// How many are published before their confirmations are awaited.
const WINDOW: usize = 100;

/// How many may wait in a queue before the next are published: the storm is to meet publisher and
/// consumers at work.
const BACKLOG: u32 = 500;

/// Publishes everything, and waits until the consumers have taken it.
pub(crate) async fn publish(options: &Options) {
    let order = options.order();
    let mut outbox = Outbox {
        order: &order,
        confirmed: options.from,
        open: Vec::new(),
    };
    while let Err(error) = outbox.session(options).await {
        say::trouble(error);
        pause().await;
    }
}

/// What is still to be confirmed.
struct Outbox<'o> {
    order: &'o Order,
    /// All up to this place in the order, killed publishers before this one included.
    confirmed: usize,
    /// The next ones that are not.
    open: Vec<u32>,
}

impl Outbox<'_> {
    async fn session(&mut self, options: &Options) -> lapin::Result<()> {
        let line = Line::open(options).await?;
        line.channel
            .confirm_select(ConfirmSelectOptions::default())
            .await?;
        while self.confirmed < self.order.events().len() {
            self.window(&line, &options.name).await?;
            backlog(&line, &options.name, BACKLOG).await?;
        }
        backlog(&line, &options.name, 0).await
    }

    async fn window(&mut self, line: &Line, exchange: &str) -> lapin::Result<()> {
        let rest = &self.order.events()[self.confirmed..];
        let window = &rest[..rest.len().min(WINDOW)];
        if self.open.is_empty() {
            self.open = window.to_vec();
        }
        while !self.open.is_empty() {
            self.attempt(line, exchange).await?;
        }
        self.confirmed += window.len();
        say::confirmed(self.confirmed);
        Ok(())
    }

    /// Publishes what is open, and takes out what is confirmed.
    async fn attempt(&mut self, line: &Line, exchange: &str) -> lapin::Result<()> {
        let kept_on_disk = BasicProperties::default().with_delivery_mode(2);
        let options = BasicPublishOptions {
            // A message that no queue takes is confirmed, and comes back.
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let mut confirms = Vec::with_capacity(self.open.len());
        for event in &self.open {
            let body = event.to_string();
            let confirm = line.channel.basic_publish(
                exchange.into(),
                "".into(),
                options,
                body.as_bytes(),
                kept_on_disk.clone(),
            );
            confirms.push(confirm.await?);
        }
        let mut open = Vec::new();
        for (event, confirm) in self.open.iter().zip(confirms) {
            if !matches!(confirm.await, Ok(Confirmation::Ack(None))) {
                open.push(*event);
            }
        }
        self.open = open;
        Ok(())
    }
}

/// Waits until no more than so many messages are in a queue.
async fn backlog(line: &Line, name: &str, most: u32) -> lapin::Result<()> {
    for channel in Channel::ALL {
        while line.look(name, channel).await?.message_count() > most {
            pause().await;
        }
    }
    Ok(())
}
