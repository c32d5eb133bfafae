//! The checker's verdicts: the protocol holds, each fault is found, and the page
//! says what was found.

mod bounds;
mod faults;
mod page;
mod protocol;

use std::fmt::Write;

use idempotent_model::{Event, Fault, Promise, System};
use stateright::{Checker, Model, Path};

/// The shortest way to break the promise, if there is one. The checker goes
/// breadth first and stops at the first; asked for several promises at once, it would
/// go on, and keep a later one.
fn shortest(fault: Fault, promise: Promise) -> Option<Vec<Event>> {
    let system = System {
        fault: Some(fault),
        bounds: bounds::FAULTS,
        properties: vec![promise.property()],
    };
    let checker = system.checker().spawn_bfs().join();
    checker.discovery(promise.name()).map(Path::into_actions)
}

/// The promises that a fault breaks.
fn broken(fault: Fault) -> impl Iterator<Item = Promise> {
    let system = System {
        fault: Some(fault),
        bounds: bounds::FAULTS,
        properties: Promise::ALL.map(Promise::property).into(),
    };
    let found = system.checker().spawn_bfs().join().discoveries();
    let promises = Promise::ALL.into_iter();
    promises.filter(move |promise| found.contains_key(promise.name()))
}

/// The events as numbered lines.
fn lines(events: &[Event]) -> String {
    let mut text = String::new();
    for (index, event) in events.iter().enumerate() {
        writeln!(text, "{:<2}  {event}", index + 1).expect("a string takes all");
    }
    text
}
