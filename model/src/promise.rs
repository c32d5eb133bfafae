//! What must hold in every state.

use stateright::Property;

use crate::System;
use crate::state::{Answer, Job, Message, State};

/// The promises of the design that a model can break.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Promise {
    /// G1: the key's row is committed if and only if the effect is.
    Together,
    /// G1, over time: the effect is committed once at most.
    Once,
    /// G2: `Processed` and `Duplicate` are returned, and a message is acknowledged, only
    /// if the key's row is committed, or will be with this transaction; `Duplicate`
    /// never while the first delivery is open.
    Ackable,
    /// G4: a lost message is worse than a second run. What is acknowledged, and in
    /// nobody's hands, has its effect.
    Kept,
    /// Where nothing more happens by itself, all is acknowledged: nobody waits for
    /// ever, and no message is left.
    Ends,
}

impl Promise {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Together,
        Self::Once,
        Self::Ackable,
        Self::Kept,
        Self::Ends,
    ];

    /// The promise in a few words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Together => "G1: row and effect together",
            Self::Once => "G1: not twice",
            Self::Ackable => "G2: ackable means committed",
            Self::Kept => "G4: nothing lost",
            Self::Ends => "all ends acknowledged",
        }
    }

    /// The promise for the checker.
    #[must_use]
    pub fn property(self) -> Property<System> {
        let holds = match self {
            Self::Together => together,
            Self::Once => once,
            Self::Ackable => ackable,
            Self::Kept => kept,
            Self::Ends => ends,
        };
        Property::always(self.name(), holds)
    }
}

fn together(system: &System, state: &State) -> bool {
    let mut fates = state.fates.iter();
    fates.all(|(&message, fate)| system.is_recorded(state, message) == (fate.effects > 0))
}

fn once(_: &System, state: &State) -> bool {
    state.fates.values().all(|fate| fate.effects <= 1)
}

fn ackable(system: &System, state: &State) -> bool {
    let is_true = |job: &Job| match job.answer {
        Some(Answer::Processed) => !job.claims.is_empty() || system.is_recorded(state, job.message),
        Some(Answer::Duplicate) => system.is_recorded(state, job.message),
        None => true,
    };
    let mut fates = state.fates.iter();
    state.open_jobs().all(|(_, job)| is_true(job))
        && fates.all(|(&message, fate)| !fate.is_acknowledged || system.is_recorded(state, message))
}

fn kept(_: &System, state: &State) -> bool {
    let mut fates = state.fates.iter();
    fates.all(|(&message, fate)| !state.is_settled(message) || fate.effects > 0)
}

fn ends(system: &System, state: &State) -> bool {
    let mut events = Vec::new();
    system.due(state, &mut events);
    !events.is_empty() || state.fates.keys().all(|&message| state.is_settled(message))
}

impl System {
    /// Whether a row of the message was ever committed, by either release.
    fn is_recorded(&self, state: &State, message: Message) -> bool {
        let channel = self.channel(message);
        state.recorded.iter().any(|name| name.channel == channel)
    }
}

/// What the checker must come across, or the promises would hold for want of
/// anything that could break them.
#[must_use]
pub fn sights() -> Vec<Property<System>> {
    vec![
        Property::sometimes("a copy waits for another's claim", |_, state: &State| {
            state.open_jobs().any(|(_, job)| job.waits_for.is_some())
        }),
        Property::sometimes("a copy is a duplicate", |_, state: &State| {
            let mut jobs = state.open_jobs();
            jobs.any(|(_, job)| job.answer == Some(Answer::Duplicate))
        }),
        Property::sometimes("an error is swallowed", |_, state: &State| {
            state.open_jobs().any(|(_, job)| job.is_aborted)
        }),
        Property::sometimes("a message has both names", |_, state: &State| {
            state.rows.len() > state.fates.len()
        }),
        Property::sometimes("all rows are pruned", |_, state: &State| {
            state.rows.is_empty() && !state.recorded.is_empty()
        }),
        Property::sometimes("all messages have their effects", |_, state: &State| {
            state.fates.values().all(|fate| fate.effects > 0)
        }),
    ]
}
