//! A broker in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use idempotent_runtime::{Attempts, Disposition, ManyWriters, disposition, transact};
use idempotent_tests::Engine;
use sqlx::Pool;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::way::Way;

/// How long a consumer waits before it takes the next message after one that failed.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a part of the messages may take, with nodes that are killed meanwhile.
const PATIENCE: Duration = Duration::from_mins(10);

/// Messages that come until they are acknowledged, some of them twice.
#[derive(Debug)]
pub struct Broker {
    messages: usize,
    queue: Mutex<VecDeque<usize>>,
    /// How many deliveries are not acknowledged yet.
    open: watch::Sender<usize>,
}

impl Broker {
    /// Three in ten come twice.
    #[must_use]
    pub fn with(messages: usize) -> Arc<Self> {
        let copies = (0..messages).filter(|message| message % 10 < 3);
        let queue: VecDeque<_> = (0..messages).chain(copies).collect();
        Arc::new(Self {
            messages,
            open: watch::Sender::new(queue.len()),
            queue: Mutex::new(queue),
        })
    }

    /// The ids of the messages.
    pub fn ids(&self) -> impl Iterator<Item = String> {
        (0..self.messages).map(id)
    }

    /// Waits until so many in a hundred deliveries are acknowledged.
    ///
    /// # Panics
    ///
    /// If that takes too long: the consumers have gone.
    pub async fn until_acknowledged(&self, percent: usize) {
        let mut open = self.open.subscribe();
        let all = self.messages * 13 / 10;
        let is_so = |open: &usize| (all - *open) * 100 >= all * percent;
        let acknowledged = timeout(PATIENCE, open.wait_for(is_so)).await;
        assert!(acknowledged.is_ok(), "nobody consumes");
    }

    /// The next delivery. `None`: all are acknowledged.
    async fn next(&self) -> Option<usize> {
        let mut open = self.open.subscribe();
        loop {
            if *open.borrow_and_update() == 0 {
                return None;
            }
            let next = self.lock().pop_front();
            if next.is_some() {
                return next;
            }
            open.changed().await.ok()?;
        }
    }

    fn acknowledge(&self) {
        self.open.send_modify(|open| *open -= 1);
    }

    fn give_back(&self, message: usize) {
        self.lock().push_back(message);
        self.open.send_modify(|_| {});
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<usize>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Consumers, each of which goes over to the next database when a message fails. The tasks end
/// when all is acknowledged, each with the number of its deliveries that failed.
///
/// # Panics
///
/// In a consumer, if a message fails that is not to come again.
#[must_use]
pub fn consume<DB: Engine + ManyWriters>(
    broker: &Arc<Broker>,
    consumers: usize,
    pools: &[Pool<DB>],
) -> JoinSet<usize> {
    (0..consumers)
        .map(|consumer| {
            let (before, from) = pools.split_at(consumer % pools.len());
            consume_alone(Arc::clone(broker), [from, before].concat())
        })
        .collect()
}

async fn consume_alone<DB: Engine + ManyWriters>(
    broker: Arc<Broker>,
    pools: Vec<Pool<DB>>,
) -> usize {
    let mut failures = 0;
    while let Some(message) = broker.next().await {
        let (id, way) = (id(message), Way::ALL[message % Way::ALL.len()]);
        let attempts = Attempts::on(&pools[failures % pools.len()]);
        match transact!(attempts, tx => way.handle(tx, &id)).await {
            Ok(_) => broker.acknowledge(),
            Err(error) => {
                broker.give_back(message);
                failures += 1;
                let is_to_come_again = disposition(&error) == Disposition::Redeliver;
                assert!(is_to_come_again, "{way:?} {id}: {error:?}");
                assert!(!error.is_transaction_lost(), "{way:?} {id}: {error:?}");
                sleep(PAUSE).await;
            }
        }
    }
    failures
}

fn id(message: usize) -> String {
    format!("message-{message:06}")
}
