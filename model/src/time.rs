//! The clock, and the pruner that goes by it.

use crate::System;
use crate::event::Event;
use crate::protocol::{Fault, REDELIVERY};
use crate::state::{Fate, Job, Message, State};

impl System {
    /// Time passes, and what has been kept long enough is deleted.
    pub(crate) fn passing(&self, state: &State, events: &mut Vec<Event>) {
        if state.now < self.bounds.ticks && self.is_in_time(state) {
            events.push(Event::Ticks);
        }
        let is_due = |at: u8| state.now >= at + self.retain();
        let due = state.rows.iter().filter(|&(_, &at)| is_due(at));
        events.extend(due.map(|(&name, _)| Event::Prunes(name)));
    }

    /// What `redelivery` asserts of the surroundings: so long after its claim, a message
    /// is acknowledged and no copy of it is in anybody's hands. Without an end the clock
    /// could outrun every consumer, and no `retain` would do.
    fn is_in_time(&self, state: &State) -> bool {
        let is_late = |at: u8| state.now >= at + REDELIVERY;
        let is_open_late = |job: &Job| !job.claims.is_empty() && is_late(job.since);
        let is_left_late = |(&message, fate): (&Message, &Fate)| {
            let is_held = state.is_in_flight(message) && !self.has(Fault::HoldLong);
            (!fate.is_acknowledged || is_held) && fate.claimed_at.is_some_and(is_late)
        };
        !state.open_jobs().any(|(_, job)| is_open_late(job))
            && !state.fates.iter().any(is_left_late)
    }
}
