//! Steps with a heading and their time.

use std::time::Instant;

use crate::error::Error;

/// Runs one step and says how long it took.
pub(crate) fn step<T>(name: &str, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    heading(name);
    let start = Instant::now();
    let result = work();
    let seconds = start.elapsed().as_secs_f64();
    match &result {
        Ok(_) => eprintln!("== {name}: {seconds:.1} s"),
        Err(_) => eprintln!("== {name}: FAILED after {seconds:.1} s"),
    }
    result
}

/// Announces a step whose own output ends the run.
pub(crate) fn heading(name: &str) {
    eprintln!("== {name}");
}
