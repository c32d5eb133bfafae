//! Who runs when.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::Failed;

/// Lets every side run once per round, in turn, so that a machine that slows down
/// slows all of them; returns the results of each side. Those of the first round,
/// which warms up, are not among them.
///
/// # Errors
///
/// Those of the sides.
pub async fn interleave<S: Copy, T>(
    rounds: usize,
    sides: &[S],
    mut run: impl AsyncFnMut(S) -> Result<T, Failed>,
) -> Result<Vec<Vec<T>>, Failed> {
    let mut results: Vec<Vec<T>> = sides.iter().map(|_| Vec::new()).collect();
    for round in 0..=rounds {
        for (results, side) in results.iter_mut().zip(sides) {
            let result = run(*side).await?;
            if round > 0 {
                results.push(result);
            }
        }
        eprintln!("round {round} of {rounds}");
    }
    Ok(results)
}

/// Lets so many workers, who are told their numbers, work at once; returns how long
/// that took.
///
/// # Errors
///
/// That of the first one who fails, or panics.
pub async fn at_once<F>(workers: i64, mut work: impl FnMut(i64) -> F) -> Result<Duration, Failed>
where
    F: Future<Output = Result<(), Failed>> + Send + 'static,
{
    let start = Instant::now();
    let mut running: JoinSet<Result<(), Failed>> = JoinSet::new();
    for worker in 0..workers {
        running.spawn(work(worker));
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    Ok(start.elapsed())
}
