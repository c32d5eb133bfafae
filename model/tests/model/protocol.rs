//! The protocol, as it is designed, keeps its promises.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};

use idempotent_model::{Bounds, Promise, State, System, sights};
use stateright::{Checker, Model};

use crate::bounds::{LONG, SHORT, Scene, is_full};

/// How much was looked at.
pub(crate) struct Size {
    pub(crate) states: usize,
    /// The number of events in the longest of the shortest ways to a state.
    pub(crate) depth: usize,
}

impl Display for Size {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} states, {} events deep", self.states, self.depth)
    }
}

/// Checks all promises in all states.
pub(crate) fn hold(scene: &Scene) -> Size {
    let system = designed(scene.bounds, Promise::ALL.map(Promise::property).into());
    let checker = system.checker().spawn_bfs().join();
    checker.assert_properties();
    let size = Size {
        states: checker.unique_state_count(),
        depth: checker.max_depth() - 1,
    };
    println!("{}: {size}", scene.name);
    size
}

fn designed(bounds: Bounds, properties: Vec<stateright::Property<System>>) -> System {
    System {
        fault: None,
        bounds,
        properties,
    }
}

#[test]
fn the_protocol_keeps_its_promises() {
    let more: &[Scene] = if is_full() { &LONG } else { &[] };
    for scene in SHORT.iter().chain(more) {
        hold(scene);
    }
}

#[test]
fn all_that_could_break_a_promise_is_met() {
    let system = designed(crate::bounds::FAULTS, sights());
    system.checker().spawn_bfs().join().assert_properties();
}

/// "All ends acknowledged" says that nobody is stuck; that nobody goes round in
/// circles is seen here.
#[test]
fn no_state_comes_back() {
    for scene in &SHORT {
        let system = designed(scene.bounds, Vec::new());
        let mut walk = HashMap::new();
        for state in system.init_states() {
            leave(&system, &state, &mut walk);
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Walk {
    Below,
    Left,
}

/// Goes on from a state by all ways.
fn leave(system: &System, state: &State, walk: &mut HashMap<State, Walk>) {
    match walk.insert(state.clone(), Walk::Below) {
        None => {}
        Some(Walk::Below) => panic!("a state comes back: {state:?}"),
        Some(Walk::Left) => {
            walk.insert(state.clone(), Walk::Left);
            return;
        }
    }
    for next in system.next_states(state) {
        leave(system, &next, walk);
    }
    walk.insert(state.clone(), Walk::Left);
}
