//! What a step can meet, and what comes of it.

use crate::System;
use crate::event::{Act, Event};
use crate::protocol::{Fault, Step};
use crate::state::{Answer, Job, Name, State, Worker};

impl System {
    /// What each worker does next. One that waits has nothing to do.
    pub(crate) fn steps(&self, state: &State, events: &mut Vec<Event>) {
        for (worker, job) in state.open_jobs() {
            let mut may = |act| events.push(Event::Works(worker, act));
            match self.program()[job.step] {
                Step::Claim => {
                    let inserts = self.to_claim(job).into_iter();
                    inserts
                        .filter_map(|name| self.insert(state, worker, job, name))
                        .for_each(may);
                }
                Step::Look => may(self.look(state, job)),
                Step::Insert => self
                    .to_claim(job)
                    .into_iter()
                    .map(Act::Claims)
                    .for_each(may),
                Step::Run => may(Act::Runs),
                Step::Prove if job.is_aborted && !self.has(Fault::NoProof) => may(Act::Refuses),
                Step::Prove => may(Act::Returns),
                Step::Commit => may(Act::Commits),
                Step::Acknowledge => may(Act::Acknowledges),
            }
        }
    }

    /// What can go wrong instead. A crash stands for all that ends a transaction and
    /// gives the copy back: a killed process, a cut connection, a handler's `Err`, an
    /// acknowledgement that is lost.
    pub(crate) fn mishaps(&self, state: &State, events: &mut Vec<Event>) {
        if state.mishaps_left == 0 {
            return;
        }
        for (worker, job) in state.open_jobs() {
            let mut may = |act| events.push(Event::Works(worker, act));
            may(Act::Crashes);
            match self.program()[job.step] {
                Step::Run => may(Act::Swallows),
                Step::Commit => {
                    may(Act::CommitsUnheard { is_stored: true });
                    may(Act::CommitsUnheard { is_stored: false });
                }
                _ => {}
            }
        }
    }

    /// The names that the insert may take next: in order, and while it waits for one,
    /// no other.
    fn to_claim(&self, job: &Job) -> Vec<Name> {
        if let Some(name) = job.waits_for {
            return vec![name];
        }
        let names = self.names(job.message, job.release);
        names
            .difference(&job.claims)
            .copied()
            .take(self.choice())
            .collect()
    }

    /// What the unique index says. `None`: it waits.
    fn insert(&self, state: &State, worker: Worker, job: &Job, name: Name) -> Option<Act> {
        let is_open = state
            .open_jobs()
            .any(|(other, job)| other != worker && job.claims.contains(&name));
        let has_waited = job.waits_for == Some(name);
        let is_duplicate = state.rows.contains_key(&name)
            || (is_open && self.has(Fault::OpenIsDuplicate))
            || (!is_open && has_waited && self.has(Fault::LoserIsDuplicate));
        match (is_duplicate, is_open) {
            (true, _) => Some(Act::Finds(name)),
            (false, true) => (!has_waited).then_some(Act::Waits(name)),
            (false, false) => Some(Act::Claims(name)),
        }
    }

    fn look(&self, state: &State, job: &Job) -> Act {
        let names = self.names(job.message, job.release);
        let stored = names.into_iter().find(|name| state.rows.contains_key(name));
        stored.map_or(Act::Looks, Act::Finds)
    }

    /// What an act changes; of an idle worker, nothing. A worker whose job is not put
    /// back is idle, and the broker still owes what was not acknowledged.
    pub(crate) fn act(&self, state: &mut State, worker: Worker, act: Act) -> Option<()> {
        let mut job = state.jobs[worker].take()?;
        if act.is_mishap() {
            state.mishaps_left -= 1;
        }
        match act {
            Act::Looks => job.step += 1,
            Act::Waits(name) => job.waits_for = Some(name),
            Act::Claims(name) => {
                job.waits_for = None;
                job.since = state.now;
                job.claims.insert(name);
                let is_done = job.claims == self.names(job.message, job.release);
                job.step += usize::from(is_done);
            }
            Act::Finds(_) => {
                job.waits_for = None;
                job.claims.clear();
                job.answer = Some(Answer::Duplicate);
                job.step = self.acknowledgement();
            }
            Act::Runs => {
                job.has_effect = true;
                job.step += 1;
            }
            Act::Swallows => {
                job.abort();
                job.step += 1;
            }
            Act::Returns => {
                job.answer = Some(Answer::Processed);
                job.step += 1;
            }
            Act::Commits => {
                state.commit(&mut job);
                job.step += 1;
            }
            Act::CommitsUnheard { is_stored } => {
                if is_stored {
                    state.commit(&mut job);
                }
                job.abort();
                if !self.has(Fault::AcknowledgeInDoubt) {
                    return Some(());
                }
                job.step += 1;
            }
            Act::Acknowledges => {
                state.fates.entry(job.message).or_default().is_acknowledged = true;
                job.step += 1;
            }
            Act::Refuses | Act::Crashes => return Some(()),
        }
        if job.step < self.program().len() {
            state.jobs[worker] = Some(job);
        }
        Some(())
    }
}
