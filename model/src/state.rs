//! One moment of the whole system.

use std::collections::{BTreeMap, BTreeSet};

use crate::Bounds;

/// The number of a consumer.
pub type Worker = usize;

/// One event is fanned out to two channels: two messages, each due once.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Message {
    /// The event's notice by e-mail.
    Email,
    /// The same event's notice by push.
    Push,
}

/// The version of the service that a consumer runs. Which one takes a copy is
/// left open at each delivery: that covers a deployment, both side by side, and
/// the way back.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Release {
    /// With the scope `alert`.
    Old,
    /// With the scope `notify`, `was("alert")`.
    New,
}

/// What a row is stored under.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Name {
    /// The scope, by the release whose own it is.
    pub scope: Release,
    /// The key `event.id, channel`; without a channel the coarse `event.id`.
    pub channel: Option<Message>,
}

/// A moment.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct State {
    pub(crate) now: u8,
    pub(crate) mishaps_left: u8,
    pub(crate) spares_left: u8,
    /// Committed rows, each with the time of its claim.
    pub(crate) rows: BTreeMap<Name, u8>,
    /// All that were ever committed, pruned or not.
    pub(crate) recorded: BTreeSet<Name>,
    pub(crate) fates: BTreeMap<Message, Fate>,
    /// What each worker has at hand.
    pub(crate) jobs: Vec<Option<Job>>,
}

/// What has become of a message.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct Fate {
    pub(crate) is_acknowledged: bool,
    /// Effects that are committed.
    pub(crate) effects: u8,
    /// The time of the first claim that was committed.
    pub(crate) claimed_at: Option<u8>,
}

/// A copy of a message in a worker's hands, and the worker's transaction. A crash
/// takes both along, so that nothing is left to clean up (G5).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Job {
    pub(crate) message: Message,
    pub(crate) release: Release,
    /// Where in the protocol.
    pub(crate) step: usize,
    /// The time of the claim; before that, of the delivery.
    pub(crate) since: u8,
    /// Rows that the open transaction has inserted.
    pub(crate) claims: BTreeSet<Name>,
    /// Whether the open transaction holds an effect.
    pub(crate) has_effect: bool,
    /// Whether an error has aborted the open transaction.
    pub(crate) is_aborted: bool,
    /// The row that an insert waits for, in another's open transaction.
    pub(crate) waits_for: Option<Name>,
    pub(crate) answer: Option<Answer>,
}

/// What a handler has returned.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Answer {
    Processed,
    Duplicate,
}

impl State {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let messages = [Message::Email, Message::Push]
            .into_iter()
            .take(bounds.messages);
        Self {
            now: 0,
            mishaps_left: bounds.mishaps,
            spares_left: bounds.spares,
            rows: BTreeMap::new(),
            recorded: BTreeSet::new(),
            fates: messages.map(|message| (message, Fate::default())).collect(),
            jobs: vec![None; bounds.workers],
        }
    }

    pub(crate) fn open_jobs(&self) -> impl Iterator<Item = (Worker, &Job)> {
        let jobs = self.jobs.iter().enumerate();
        jobs.filter_map(|(worker, job)| Some((worker, job.as_ref()?)))
    }

    /// Whether it is acknowledged, and no copy is in anybody's hands.
    pub(crate) fn is_settled(&self, message: Message) -> bool {
        self.fates[&message].is_acknowledged && !self.is_in_flight(message)
    }

    pub(crate) fn is_in_flight(&self, message: Message) -> bool {
        self.open_jobs().any(|(_, job)| job.message == message)
    }
}

impl State {
    /// Makes the transaction's work visible to all, and counts it. What an error has
    /// aborted has nothing to store: the database answers ROLLBACK.
    pub(crate) fn commit(&mut self, job: &mut Job) {
        if job.has_effect || !job.claims.is_empty() {
            let fate = self.fates.entry(job.message).or_default();
            fate.effects += u8::from(job.has_effect);
            fate.claimed_at.get_or_insert(job.since);
        }
        self.recorded.extend(&job.claims);
        self.rows
            .extend(job.claims.iter().map(|&name| (name, job.since)));
        job.end();
    }
}

impl Job {
    pub(crate) fn new(message: Message, release: Release, now: u8) -> Self {
        Self {
            message,
            release,
            step: 0,
            since: now,
            claims: BTreeSet::new(),
            has_effect: false,
            is_aborted: false,
            waits_for: None,
            answer: None,
        }
    }

    /// Begins anew, with nothing in the transaction.
    fn end(&mut self) {
        self.claims.clear();
        self.has_effect = false;
        self.is_aborted = false;
    }

    /// Takes back what the transaction did.
    pub(crate) fn abort(&mut self) {
        self.end();
        self.is_aborted = true;
    }
}
