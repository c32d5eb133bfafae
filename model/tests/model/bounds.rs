//! How large the models are.

use idempotent_model::Bounds;

/// A model of the protocol, with its name on the page.
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) bounds: Bounds,
}

/// Enough for each fault.
pub(crate) const FAULTS: Bounds = Bounds {
    workers: 2,
    messages: 2,
    releases: 2,
    mishaps: 1,
    spares: 1,
    ticks: 2,
};

/// What is checked in each run of the tests.
pub(crate) const SHORT: [Scene; 2] = [
    Scene {
        name: "one event, two channels",
        bounds: FAULTS,
    },
    Scene {
        name: "one message, three copies at once",
        bounds: Bounds {
            workers: 3,
            messages: 1,
            releases: 2,
            mishaps: 2,
            spares: 2,
            ticks: 3,
        },
    },
];

/// What is checked besides, where `IDEMPOTENT_FULL` is set.
pub(crate) const LONG: [Scene; 2] = [
    Scene {
        name: "one event, two channels, three consumers",
        bounds: Bounds {
            workers: 3,
            messages: 2,
            releases: 2,
            mishaps: 1,
            spares: 2,
            ticks: 2,
        },
    },
    Scene {
        name: "one message, and many mishaps",
        bounds: Bounds {
            workers: 3,
            messages: 1,
            releases: 2,
            mishaps: 4,
            spares: 4,
            ticks: 4,
        },
    },
];

/// Says whether the long forms of the tests are wanted.
pub(crate) fn is_full() -> bool {
    std::env::var_os("IDEMPOTENT_FULL").is_some_and(|value| !value.is_empty())
}
