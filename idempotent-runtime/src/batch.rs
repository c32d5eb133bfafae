//! The frame around a handler's body that gets many messages at once.

#![allow(
    clippy::missing_errors_doc,
    reason = "the functions that return a result are hidden"
)]

use std::collections::{HashMap, HashSet};

use sqlx::Transaction;

use crate::claim::Claimed;
use crate::error::{Cause, Error};
use crate::frame::BatchFrame;
use crate::handler::Handler;
use crate::key::Key;
use crate::observe;
use crate::outcome::{Batch, Verdict};
use crate::store::Store;

/// The keys of a batch, one for each message, in order.
#[derive(Debug)]
pub struct Keys(Vec<Key>);

/// Starts the keys of a batch.
#[must_use]
pub const fn new_keys() -> Keys {
    Keys(Vec::new())
}

/// Adds that of the next message.
pub fn push_key(keys: &mut Keys, key: Key) {
    keys.0.push(key);
}

/// A claimed batch: what became of each message.
#[derive(Debug)]
pub struct ClaimedBatch<'a, 'c, DB: Store> {
    claimed: Claimed<'a, 'c, DB>,
    outcomes: Vec<Verdict>,
}

/// Claims the keys that are new, and gives their messages. `Err` holds what the
/// handler returns at once: that there are none, or an error.
pub async fn claim_batch<'a, 'c, R, T, E, O, M, DB: Store>(
    frame: BatchFrame<R, T, E, O>,
    tx: &'a mut Transaction<'c, DB>,
    handler: &'static Handler,
    keys: Keys,
    messages: Vec<M>,
) -> Result<(ClaimedBatch<'a, 'c, DB>, Vec<M>), O> {
    let Keys(keys) = keys;
    let distinct = match distinct(handler, &keys) {
        Ok(distinct) => distinct,
        Err(error) => return Err(frame.fail(error)),
    };
    let claimed = match Claimed::of_batch(tx, handler, &distinct).await {
        Ok(Some(claimed)) => claimed,
        Ok(None) => {
            observe::decided_of_batch(handler.scope, 0, keys.len());
            let outcomes = vec![Verdict::Duplicate; keys.len()];
            return Err((frame.make)(Ok(Batch {
                value: None,
                outcomes,
            })));
        }
        Err(error) => return Err(frame.fail(error)),
    };
    let mut fresh: HashSet<&str> = claimed.keys().collect();
    let outcomes: Vec<Verdict> = keys
        .iter()
        .map(|key| {
            // The first of its key is the message, the others are its duplicates.
            if fresh.remove(key.text()) {
                Verdict::Processed
            } else {
                Verdict::Duplicate
            }
        })
        .collect();
    let messages = messages.into_iter().zip(&outcomes);
    let messages = messages
        .filter(|(_, outcome)| **outcome == Verdict::Processed)
        .map(|(message, _)| message)
        .collect();
    Ok((ClaimedBatch { claimed, outcomes }, messages))
}

/// Each key once, in the order of their texts, in which every batch claims.
fn distinct<'k>(handler: &Handler, keys: &'k [Key]) -> Result<Vec<&'k Key>, Error> {
    let missing = keys
        .iter()
        .enumerate()
        .find_map(|(index, key)| Some((index, key.missing()?)));
    if let Some((index, part)) = missing {
        let place = format!("message {} of {} in the batch", index + 1, keys.len());
        return Err(Error::about(
            handler.scope,
            &place,
            Cause::MissingKey { part },
        ));
    }
    let distinct: HashMap<&str, &Key> = keys.iter().map(|key| (key.text(), key)).collect();
    let mut distinct: Vec<&Key> = distinct.into_values().collect();
    distinct.sort_unstable_by_key(|key| key.text());
    Ok(distinct)
}

/// The transaction, lent to the body.
pub fn transaction_of_batch<'t, 'c, DB: Store>(
    batch: &'t mut ClaimedBatch<'_, 'c, DB>,
) -> &'t mut Transaction<'c, DB> {
    crate::claim::transaction(&mut batch.claimed)
}

/// Proves the claim of a body that succeeded; undoes that of one that failed.
pub async fn finish_batch<R, T, E, O, DB: Store>(
    frame: BatchFrame<R, T, E, O>,
    batch: ClaimedBatch<'_, '_, DB>,
    result: R,
) -> O {
    let ClaimedBatch { claimed, outcomes } = batch;
    match (frame.read)(result) {
        Ok(value) => match claimed.prove(None).await {
            Ok(key) => {
                let batch = Batch {
                    value: Some(value),
                    outcomes,
                };
                let processed = batch.processed();
                let duplicates = batch.outcomes.len() - processed;
                observe::decided_of_batch(key.scope(), processed, duplicates);
                (frame.make)(Ok(batch))
            }
            Err(error) => frame.fail(error),
        },
        Err(error) => match claimed.undo().await {
            Ok(()) => (frame.make)(Err(error)),
            Err(lost) => frame.fail(lost),
        },
    }
}
