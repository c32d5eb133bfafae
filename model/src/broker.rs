//! The broker: at least once, and sometimes once more.

use crate::System;
use crate::event::Event;
use crate::protocol::REDELIVERY;
use crate::state::{Job, Message, Release, State, Worker};

impl System {
    /// What is not acknowledged and in nobody's hands is delivered.
    pub(crate) fn owed(&self, state: &State, events: &mut Vec<Event>) {
        for (&message, fate) in &state.fates {
            if !fate.is_acknowledged && !state.is_in_flight(message) {
                self.deliveries(state, message, events);
            }
        }
    }

    /// Copies that nobody needs: while another is in flight, or after the
    /// acknowledgement. They end in time.
    pub(crate) fn spares(&self, state: &State, events: &mut Vec<Event>) {
        if state.spares_left == 0 {
            return;
        }
        for (&message, fate) in &state.fates {
            let is_spare = fate.is_acknowledged || state.is_in_flight(message);
            let is_in_time = |at| state.now <= at + REDELIVERY;
            if is_spare && fate.claimed_at.is_none_or(is_in_time) {
                self.deliveries(state, message, events);
            }
        }
    }

    /// Idle workers are alike: the first takes it, with any of the releases.
    fn deliveries(&self, state: &State, message: Message, events: &mut Vec<Event>) {
        let Some(to) = state.jobs.iter().position(Option::is_none) else {
            return;
        };
        let releases = [Release::Old, Release::New].into_iter();
        events.extend(
            releases
                .take(self.bounds.releases)
                .map(|release| Event::Delivers {
                    message,
                    to,
                    release,
                }),
        );
    }

    pub(crate) fn deliver(state: &mut State, message: Message, to: Worker, release: Release) {
        let is_owed = !state.fates[&message].is_acknowledged && !state.is_in_flight(message);
        if !is_owed {
            state.spares_left -= 1;
        }
        state.jobs[to] = Some(Job::new(message, release, state.now));
    }
}
