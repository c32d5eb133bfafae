//! The protocol as a small model, in which a checker tries every order of
//! events: messages come more than once, to several consumers at once; any of
//! them stops at any step; time passes and rows are pruned; two releases, with a
//! rename between them, run side by side.
//!
//! Read `protocol.rs` first: what a consumer does, step by step, and what each
//! [`Fault`] does otherwise. Then `worker.rs`, what a step meets in the database,
//! and `promise.rs`, what must hold. `broker.rs` and `time.rs` are the
//! surroundings. `docs/model.md` shows what the checker finds.
//!
//! The checker is [`stateright`]. It asks for three things: the states to begin
//! with, the events that can come next in a state, and the state that an event
//! leads to.

mod broker;
mod event;
mod promise;
mod protocol;
mod state;
mod time;
mod worker;

use stateright::{Model, Property};

pub use event::{Act, Event};
pub use promise::{Promise, sights};
pub use protocol::Fault;
pub use state::{Message, Name, Release, State, Worker};

/// Consumers, a broker, a database, a pruner and a clock.
pub struct System {
    /// What the consumers do wrong, if anything.
    pub fault: Option<Fault>,
    /// How much there is of everything.
    pub bounds: Bounds,
    /// What the checker looks for.
    pub properties: Vec<Property<System>>,
}

/// What makes the number of states finite. No run is longer than what these
/// pay for.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Consumers that work at the same time.
    pub workers: usize,
    /// Messages: channels that one event is fanned out to, at most two.
    pub messages: usize,
    /// Releases side by side, at most two.
    pub releases: usize,
    /// Mishaps: a crash at any step, an error that is swallowed, an answer that
    /// is lost.
    pub mishaps: u8,
    /// Copies beyond those that a broker owes: a second one at the same time, or
    /// one after the acknowledgement.
    pub spares: u8,
    /// How far the clock goes.
    pub ticks: u8,
}

impl Model for System {
    type State = State;
    type Action = Event;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self.bounds)]
    }

    fn actions(&self, state: &State, events: &mut Vec<Event>) {
        self.due(state, events);
        self.spares(state, events);
        self.mishaps(state, events);
        self.passing(state, events);
    }

    fn next_state(&self, state: &State, event: Event) -> Option<State> {
        let mut state = state.clone();
        match event {
            Event::Delivers {
                message,
                to,
                release,
            } => {
                Self::deliver(&mut state, message, to, release);
            }
            Event::Ticks => state.now += 1,
            Event::Prunes(name) => {
                state.rows.remove(&name);
            }
            Event::Works(worker, act) => self.act(&mut state, worker, act)?,
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.properties.clone()
    }
}

impl System {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// What happens by itself, sooner or later, if nothing else does.
    fn due(&self, state: &State, events: &mut Vec<Event>) {
        self.owed(state, events);
        self.steps(state, events);
    }
}
