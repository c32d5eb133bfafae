//! What is said of each decision: one event of `tracing`, and metrics.
//!
//! Names and fields are a public contract, written down in `docs/observability.md`.
//! Keys can be personal data: they stand in events of the level DEBUG alone.

use crate::error::{Cause, Error};

/// Whether the duplicates of a handler with `retain` are read, for their age: it
/// tells whether keys are kept long enough.
pub(crate) const AGES: bool = cfg!(feature = "metrics");

/// That of the crate, whichever module speaks.
const TARGET: &str = "idempotent_runtime";

/// What became of a delivery, where the handler itself did not fail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Decision {
    Processed,
    Duplicate,
    Replayed,
    MissingKey,
    KeyReused,
    InFlight,
    ResultUnreadable,
    TransactionLost,
}

impl Decision {
    const fn name(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Duplicate => "duplicate",
            Self::Replayed => "replayed",
            Self::MissingKey => "missing_key",
            Self::KeyReused => "key_reused",
            Self::InFlight => "in_flight",
            Self::ResultUnreadable => "result_unreadable",
            Self::TransactionLost => "transaction_lost",
        }
    }

    fn of(error: &Error) -> Option<Self> {
        Some(match error.cause() {
            Cause::MissingKey { .. } => Self::MissingKey,
            Cause::KeyReused { .. } => Self::KeyReused,
            Cause::InFlight => Self::InFlight,
            Cause::Unreadable(_) => Self::ResultUnreadable,
            Cause::TransactionLost(_) => Self::TransactionLost,
            _ => return None,
        })
    }
}

/// Says what became of a message. `age` is how many seconds ago it was processed
/// before, where the row was read.
pub(crate) fn decided(scope: &'static str, key: &str, decision: Decision, age: Option<f64>) {
    let name = decision.name();
    tracing::debug!(target: TARGET, scope, key, decision = name, age, "message {name}");
    count(scope, decision, 1);
    if let Some(age) = age {
        record_age(scope, age);
    }
}

/// The same of a batch, whose messages are not told one by one.
pub(crate) fn decided_of_batch(scope: &'static str, processed: usize, duplicates: usize) {
    tracing::debug!(
        target: TARGET,
        scope,
        decision = "batch",
        processed,
        duplicates,
        "batch processed"
    );
    count(scope, Decision::Processed, processed);
    count(scope, Decision::Duplicate, duplicates);
}

/// Says that a message could not be processed for a reason of ours.
pub(crate) fn failed(error: &Error) {
    let Some(decision) = Decision::of(error) else {
        return;
    };
    let Some((scope, key)) = error.subject() else {
        return;
    };
    let name = decision.name();
    match decision {
        Decision::InFlight => {
            tracing::debug!(target: TARGET, scope, key, decision = name, "message {name}");
        }
        Decision::TransactionLost => {
            tracing::error!(target: TARGET, scope, decision = name, "message {name}");
        }
        _ => tracing::warn!(target: TARGET, scope, decision = name, "message {name}"),
    }
    count(scope, decision, 1);
}

/// Says that `transact!` runs a transaction again.
pub(crate) fn retried() {
    tracing::debug!(target: TARGET, decision = "retried", "transaction retried");
    #[cfg(feature = "metrics")]
    metrics::counter!("idempotent_retries_total").increment(1);
}

#[cfg(feature = "metrics")]
fn count(scope: &'static str, decision: Decision, messages: usize) {
    let labels = [("scope", scope), ("decision", decision.name())];
    metrics::counter!("idempotent_messages_total", &labels).increment(messages as u64);
}

#[cfg(feature = "metrics")]
fn record_age(scope: &'static str, age: f64) {
    metrics::histogram!("idempotent_duplicate_age_seconds", "scope" => scope).record(age);
}

#[cfg(not(feature = "metrics"))]
const fn count(_: &'static str, _: Decision, _: usize) {}

#[cfg(not(feature = "metrics"))]
const fn record_age(_: &'static str, _: f64) {}
