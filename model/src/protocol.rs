//! What a consumer does with a copy of a message, and the classic faults, each a
//! line that differs.

use std::collections::BTreeSet;

use crate::System;
use crate::state::{Message, Name, Release};

/// One step of a consumer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// Inserts the names, one row after the other. A row in another's open
    /// transaction is waited for.
    Claim,
    /// Reads whether a row is there.
    Look,
    /// Inserts the names where no unique constraint stands in the way.
    Insert,
    /// Runs the handler's body: the effect.
    Run,
    /// Proves that the transaction is the one that claimed, and can still commit.
    Prove,
    /// Commits.
    Commit,
    /// Tells the broker.
    Acknowledge,
}

/// The mistakes that people make by hand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The record is committed, then the effect, in a transaction of its own.
    RecordFirst,
    /// The effect is committed, then the record.
    EffectFirst,
    /// The broker is told before the commit.
    AcknowledgeFirst,
    /// The answer to COMMIT did not come, and the broker is told all the same.
    AcknowledgeInDoubt,
    /// A row is pruned while a copy can still come.
    PruneEarly,
    /// A consumer keeps a copy in its hands until the row may be pruned.
    HoldLong,
    /// The key is the event's id, without the channel.
    CoarseKey,
    /// The new release does not know the old name, or no longer.
    NoWas,
    /// Both names are claimed, in any order.
    Unsorted,
    /// The handler swallows a database error, and nobody looks.
    NoProof,
    /// A look, then an insert, without a unique constraint.
    LookThenInsert,
    /// One that waited for another's claim takes itself for a duplicate, also where the
    /// other rolled back.
    LoserIsDuplicate,
    /// A row that is not committed yet makes duplicates.
    OpenIsDuplicate,
}

/// How long after the claim a copy can still come (`redelivery`).
pub(crate) const REDELIVERY: u8 = 1;

impl System {
    /// The consumer's steps.
    pub(crate) fn program(&self) -> &'static [Step] {
        use Step::{Acknowledge, Claim, Commit, Insert, Look, Prove, Run};
        match self.fault {
            Some(Fault::RecordFirst) => &[Claim, Commit, Run, Prove, Commit, Acknowledge],
            Some(Fault::EffectFirst) => &[Look, Run, Prove, Commit, Claim, Commit, Acknowledge],
            Some(Fault::AcknowledgeFirst) => &[Claim, Run, Prove, Acknowledge, Commit],
            Some(Fault::LookThenInsert) => &[Look, Insert, Run, Prove, Commit, Acknowledge],
            _ => &[Claim, Run, Prove, Commit, Acknowledge],
        }
    }

    /// Where a duplicate goes on.
    pub(crate) fn acknowledgement(&self) -> usize {
        let mut steps = self.program().iter();
        steps
            .position(|step| *step == Step::Acknowledge)
            .unwrap_or_default()
    }

    /// What a release stores a message under. The set's order is that of the claim.
    pub(crate) fn names(&self, message: Message, release: Release) -> BTreeSet<Name> {
        let scopes: &[Release] = match release {
            Release::Old => &[Release::Old],
            Release::New if self.has(Fault::NoWas) => &[Release::New],
            Release::New => &[Release::Old, Release::New],
        };
        let channel = self.channel(message);
        scopes
            .iter()
            .map(|&scope| Name { scope, channel })
            .collect()
    }

    /// The part of the key that tells the channels of an event apart.
    pub(crate) fn channel(&self, message: Message) -> Option<Message> {
        (!self.has(Fault::CoarseKey)).then_some(message)
    }

    /// How many of the names that are left one statement may choose from.
    pub(crate) fn choice(&self) -> usize {
        if self.has(Fault::Unsorted) {
            usize::MAX
        } else {
            1
        }
    }

    /// How long after the claim a row may be pruned (`retain`).
    pub(crate) fn retain(&self) -> u8 {
        if self.has(Fault::PruneEarly) {
            REDELIVERY
        } else {
            REDELIVERY + 1
        }
    }
}
