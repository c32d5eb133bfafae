//! What a consumer does with what it was given.

use idempotent_runtime::{Disposition, Verdict, disposition, transact};
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicNackOptions};
use sqlx::PgPool;
use xtask::chaos::Fault;

use crate::entry::{Channel, Entry};
use crate::ledger::{self, until_up};
use crate::options::Options;
use crate::{posting, say};

/// Where the deliveries of one queue are handled.
pub(crate) struct Desk {
    pool: PgPool,
    pub(crate) channel: Channel,
    worker: i32,
    fault: Option<Fault>,
    turn: usize,
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Posted {
    Now,
    Before,
    /// Not, as far as is known.
    Not,
}

#[derive(Clone, Copy)]
enum Guard {
    Verify,
    Savepoint,
}

/// How the entries that were delivered at once are posted.
#[derive(Clone, Copy, PartialEq)]
enum Size {
    OneByOne,
    Together,
}

impl Desk {
    pub(crate) fn new(options: &Options, pool: &PgPool, channel: Channel) -> Self {
        Self {
            pool: pool.clone(),
            channel,
            worker: options.worker,
            fault: options.fault,
            turn: 0,
        }
    }

    /// Posts what was delivered at once, and answers the broker: after the commit, never before.
    pub(crate) async fn handle(&mut self, deliveries: &[Delivery]) -> lapin::Result<()> {
        let entries = deliveries.iter().map(|delivery| self.read(delivery));
        let posted = self.post(&entries.collect::<Vec<_>>()).await;
        if posted.contains(&Posted::Not) {
            // Given back sooner, it would come again at once, and fail again.
            until_up(&self.pool).await;
        }
        if self.fault != Some(Fault::EarlyAck) {
            for (delivery, posted) in deliveries.iter().zip(&posted) {
                answer(delivery, *posted).await?;
            }
        }
        let count = |what| posted.iter().filter(|posted| **posted == what).count();
        let [now, before, not] = [Posted::Now, Posted::Before, Posted::Not].map(count);
        say::handled(now, before, not);
        Ok(())
    }

    fn read(&self, delivery: &Delivery) -> Entry {
        let number = str::from_utf8(&delivery.data).map(str::parse);
        Entry {
            event: number
                .expect("a body is text, as it was published")
                .expect("a body is a number, as it was published"),
            channel: self.channel,
        }
    }

    /// In one way of four, and the next time in another.
    async fn post(&mut self, entries: &[Entry]) -> Vec<Posted> {
        const WAYS: [(Size, Guard); 4] = [
            (Size::Together, Guard::Verify),
            (Size::OneByOne, Guard::Savepoint),
            (Size::Together, Guard::Savepoint),
            (Size::OneByOne, Guard::Verify),
        ];
        let (size, guard) = WAYS[self.turn % WAYS.len()];
        self.turn += 1;
        let is_single = |at: &usize| {
            size == Size::OneByOne || entries[*at].has_receipt() || self.fault == Some(Fault::NoKey)
        };
        let (singles, batch): (Vec<_>, Vec<_>) = (0..entries.len()).partition(is_single);
        let mut posted = vec![Posted::Not; entries.len()];
        let together = self.many(batch.iter().map(|at| entries[*at]).collect(), guard);
        for (at, became) in batch.into_iter().zip(together.await) {
            posted[at] = became;
        }
        for at in singles {
            posted[at] = self.single(entries[at], guard).await;
        }
        posted
    }

    async fn many(&self, entries: Vec<Entry>, guard: Guard) -> Vec<Posted> {
        if entries.is_empty() {
            return Vec::new();
        }
        let (pool, worker) = (&self.pool, self.worker);
        let batch = match guard {
            Guard::Verify => {
                transact!(pool, tx => posting::many(tx, entries.clone(), worker)).await
            }
            Guard::Savepoint => {
                transact!(pool, tx => posting::many_in_savepoint(tx, entries.clone(), worker)).await
            }
        };
        match batch {
            Ok(batch) => batch.outcomes.into_iter().map(Posted::from).collect(),
            Err(error) => vec![not_posted(&error); entries.len()],
        }
    }

    async fn single(&self, entry: Entry, guard: Guard) -> Posted {
        let posted = if self.fault == Some(Fault::NoKey) {
            self.without_key(entry).await
        } else if entry.has_receipt() {
            self.receipt(entry, guard).await
        } else {
            self.one(entry, guard).await
        };
        posted.unwrap_or_else(|error| not_posted(&error))
    }

    async fn one(&self, entry: Entry, guard: Guard) -> sqlx::Result<Posted> {
        let (pool, worker) = (&self.pool, self.worker);
        let outcome = match guard {
            Guard::Verify => transact!(pool, tx => posting::one(tx, entry, worker)).await?,
            Guard::Savepoint => {
                transact!(pool, tx => posting::one_in_savepoint(tx, entry, worker)).await?
            }
        };
        Ok(Posted::now_or_before(outcome.is_duplicate()))
    }

    async fn receipt(&self, entry: Entry, guard: Guard) -> sqlx::Result<Posted> {
        let (pool, worker) = (&self.pool, self.worker);
        let receipt = match guard {
            Guard::Verify => transact!(pool, tx => posting::receipt(tx, entry, worker)).await?,
            Guard::Savepoint => {
                transact!(pool, tx => posting::receipt_in_savepoint(tx, entry, worker)).await?
            }
        };
        let is_replayed = receipt.is_replayed();
        assert_eq!(
            receipt.into_inner(),
            entry.cents(),
            "the receipt of {entry:?}"
        );
        Ok(Posted::now_or_before(is_replayed))
    }

    /// As a consumer does that is not idempotent.
    async fn without_key(&self, entry: Entry) -> sqlx::Result<Posted> {
        let mut tx = self.pool.begin().await?;
        ledger::post(&mut tx, &[entry], self.worker).await?;
        tx.commit().await?;
        Ok(Posted::Now)
    }
}

impl Posted {
    fn now_or_before(is_duplicate: bool) -> Self {
        if is_duplicate {
            Self::Before
        } else {
            Self::Now
        }
    }
}

impl From<Verdict> for Posted {
    fn from(verdict: Verdict) -> Self {
        Self::now_or_before(verdict == Verdict::Duplicate)
    }
}

/// Nothing in a storm makes an entry one that can never be posted.
fn not_posted(error: &sqlx::Error) -> Posted {
    assert_eq!(disposition(error), Disposition::Redeliver, "{error}");
    say::trouble(error);
    Posted::Not
}

async fn answer(delivery: &Delivery, posted: Posted) -> lapin::Result<()> {
    if posted == Posted::Not {
        let requeue = BasicNackOptions {
            requeue: true,
            ..BasicNackOptions::default()
        };
        delivery.nack(requeue).await?;
    } else {
        delivery.ack(BasicAckOptions::default()).await?;
    }
    Ok(())
}
