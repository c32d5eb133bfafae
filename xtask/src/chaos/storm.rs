//! What happens in a storm, and when.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use std::time::Duration;

use fastrand::Rng;

use crate::error::Error;

/// How many there are unless somebody says so.
const CONSUMERS: u32 = 4;

/// How many of so many events are published a second time on purpose: three of ten.
#[must_use]
pub const fn second_copies(messages: u32) -> u32 {
    messages / 10 * 3 + messages % 10 * 3 / 10
}

/// One of these per so many published messages, and one at least.
const KILL: u64 = 250;
const DATABASE_RESTART: u64 = 10_000;
const BROKER_RESTART: u64 = 30_000;

/// How long a blow waits at most, so that blows meet every part of what is going on.
const HESITATION: u64 = 30;

/// How many pruners there are.
pub(super) const PRUNERS: u32 = 2;

/// What a storm is made of. The seed decides what happens, and after how many messages; what it
/// meets there is up to the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Storm {
    /// How many events are published: each to two queues, and three of ten twice.
    pub messages: u32,
    /// How many processes consume.
    pub consumers: u32,
    /// Of the order in which events are published, and of the blows.
    pub seed: u64,
    /// What the consumers do wrong. Then there are kills only: they are to be enough.
    pub fault: Option<Fault>,
}

/// A mistake that people make, and that the audit has to find.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The message is acknowledged before the commit.
    EarlyAck,
    /// The effect comes without a key.
    NoKey,
}

impl Fault {
    pub(crate) const ALL: [Self; 2] = [Self::EarlyAck, Self::NoKey];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::EarlyAck => "early-ack",
            Self::NoKey => "no-key",
        }
    }
}

impl FromStr for Fault {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let mut all = Self::ALL.into_iter();
        all.find(|fault| fault.name() == name)
            .ok_or_else(|| Error::new("there is no such fault"))
    }
}

/// What a process is there for. All but the auditor may be killed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Role {
    Publisher,
    Consumer(u32),
    Pruner(u32),
    Auditor,
}

impl Role {
    /// What the program calls it.
    pub(super) const fn task(self) -> &'static str {
        match self {
            Self::Publisher => "publish",
            Self::Consumer(_) => "consume",
            Self::Pruner(_) => "prune",
            Self::Auditor => "settle",
        }
    }
}

impl Display for Role {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Publisher => formatter.write_str("the publisher"),
            Self::Consumer(number) => write!(formatter, "consumer {number}"),
            Self::Pruner(number) => write!(formatter, "pruner {number}"),
            Self::Auditor => formatter.write_str("the auditor"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Blow {
    Kill(Role),
    RestartDatabase,
    RestartBroker,
}

/// A blow, and when it comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Planned {
    /// When so many messages are confirmed,
    pub(super) after: u64,
    /// and then after a moment.
    pub(super) hesitation: Duration,
    pub(super) blow: Blow,
}

impl Storm {
    /// A storm that nobody has seen.
    #[must_use]
    pub fn new(messages: u32) -> Self {
        Self {
            messages,
            consumers: CONSUMERS,
            seed: fastrand::u64(..),
            fault: None,
        }
    }

    /// How many messages are published, second copies included.
    pub(super) fn published(&self) -> u64 {
        u64::from(self.messages) + u64::from(second_copies(self.messages))
    }

    /// Who is there while it lasts.
    pub(super) fn roles(&self) -> Vec<Role> {
        let consumers = (0..self.consumers).map(Role::Consumer);
        let pruners = (0..PRUNERS).map(Role::Pruner);
        let publisher = [Role::Publisher];
        publisher
            .into_iter()
            .chain(consumers)
            .chain(pruners)
            .collect()
    }

    /// What happens, in its order.
    pub(super) fn plan(&self) -> Vec<Planned> {
        let mut random = Rng::with_seed(self.seed);
        let mut victims = Vec::new();
        let mut kill = |random: &mut Rng| {
            if victims.is_empty() {
                // Everybody has a turn before anybody has the next.
                victims = self.roles();
                random.shuffle(&mut victims);
            }
            victims.pop().map(Blow::Kill)
        };
        let published = self.published();
        // Everybody twice, at least.
        let kills = (published / KILL).max(2 * self.roles().len() as u64);
        let mut plan = self.spread(kills, &mut random, &mut kill);
        if self.fault.is_none() {
            for (every, blow) in [
                (DATABASE_RESTART, Blow::RestartDatabase),
                (BROKER_RESTART, Blow::RestartBroker),
            ] {
                let restarts = (published / every).max(1);
                plan.extend(self.spread(restarts, &mut random, &mut |_| Some(blow)));
            }
        }
        plan.sort_by_key(|planned| planned.after);
        plan
    }

    /// So many, each at a random place in its part of the whole.
    fn spread(
        &self,
        blows: u64,
        random: &mut Rng,
        blow: &mut impl FnMut(&mut Rng) -> Option<Blow>,
    ) -> Vec<Planned> {
        let published = self.published();
        let planned = |part: u64| {
            let (start, end) = (published * part / blows, published * (part + 1) / blows);
            Some(Planned {
                after: start + random.u64(0..(end - start).max(1)),
                hesitation: Duration::from_millis(random.u64(0..HESITATION)),
                blow: blow(random)?,
            })
        };
        (0..blows).filter_map(planned).collect()
    }
}

impl Display for Storm {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            messages,
            consumers,
            seed,
            fault,
        } = self;
        write!(
            formatter,
            "cargo xtask chaos --seed {seed} --messages {messages} --consumers {consumers}"
        )?;
        match fault {
            Some(fault) => write!(formatter, " --fault {}", fault.name()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORM: Storm = Storm {
        messages: 100_000,
        consumers: 4,
        seed: 7,
        fault: None,
    };

    fn count(plan: &[Planned], is_counted: impl Fn(Blow) -> bool) -> usize {
        let blows = plan.iter().map(|planned| planned.blow);
        blows.filter(|blow| is_counted(*blow)).count()
    }

    #[test]
    fn the_plan_is_that_of_the_seed() {
        assert_eq!(STORM.plan(), STORM.plan());
        assert_ne!(STORM.plan(), Storm { seed: 8, ..STORM }.plan());
    }

    #[test]
    fn blows_come_in_order_before_the_last_message() {
        for messages in [100, 100_000] {
            let storm = Storm { messages, ..STORM };
            let plan = storm.plan();
            assert!(plan.is_sorted_by_key(|planned| planned.after));
            assert!(plan.iter().all(|one| one.after < storm.published()));
        }
    }

    #[test]
    fn a_longer_storm_has_more_of_everything() {
        let plan = STORM.plan();
        assert_eq!(count(&plan, |blow| matches!(blow, Blow::Kill(_))), 520);
        assert_eq!(count(&plan, |blow| blow == Blow::RestartDatabase), 13);
        assert_eq!(count(&plan, |blow| blow == Blow::RestartBroker), 4);
    }

    #[test]
    fn a_short_one_has_everything_and_kills_everybody_twice() {
        let storm = Storm {
            messages: 500,
            ..STORM
        };
        let plan = storm.plan();
        for role in storm.roles() {
            assert_eq!(count(&plan, |blow| blow == Blow::Kill(role)), 2, "{role}");
        }
        assert_eq!(count(&plan, |blow| blow == Blow::RestartDatabase), 1);
        assert_eq!(count(&plan, |blow| blow == Blow::RestartBroker), 1);
    }

    #[test]
    fn a_fault_has_to_show_by_kills_alone() {
        for fault in Fault::ALL {
            let fault = Some(fault);
            let plan = Storm { fault, ..STORM }.plan();
            let kills = count(&plan, |blow| matches!(blow, Blow::Kill(_)));
            assert_eq!(kills, plan.len());
        }
    }

    #[test]
    fn it_is_shown_as_what_brings_it_back() {
        let shown = "cargo xtask chaos --seed 7 --messages 100000 --consumers 4";
        assert_eq!(STORM.to_string(), shown);
        let fault = Some(Fault::NoKey);
        let storm = Storm { fault, ..STORM };
        assert_eq!(storm.to_string(), format!("{shown} --fault no-key"));
    }
}
