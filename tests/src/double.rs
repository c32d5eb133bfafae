//! A handler's effect, seen twice: as a row, and as a counter that no
//! transaction can take back.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::Transaction;
use tokio::sync::{Notify, Semaphore};

use crate::engine::Engine;
use crate::guarded::AppError;

/// Stands for a handler's work.
#[derive(Debug, Default)]
pub struct Double {
    runs: AtomicUsize,
    plan: Mutex<VecDeque<Act>>,
    session: AtomicI64,
}

/// What one run does after it wrote its row, with its number. Without a plan it returns `Ok`.
#[derive(Debug)]
pub enum Act {
    /// Returns an error.
    Refuse,
    /// Says that it is there, then waits for a permit.
    Hold(Arc<Notify>, Arc<Semaphore>),
    /// The same, then returns an error.
    HoldAndRefuse(Arc<Notify>, Arc<Semaphore>),
    /// Panics.
    Panic,
    /// Never returns.
    Hang,
}

impl Double {
    /// Every run succeeds.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The first runs go by the plan.
    #[must_use]
    pub fn planned(plan: impl IntoIterator<Item = Act>) -> Self {
        Self {
            plan: Mutex::new(plan.into_iter().collect()),
            ..Self::default()
        }
    }

    /// Returns how often the work was done, also where it was rolled back.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// Returns the session that the last run was held in.
    #[must_use]
    pub fn session(&self) -> i64 {
        self.session.load(Ordering::SeqCst)
    }

    /// Does the work once.
    ///
    /// # Errors
    ///
    /// By plan, or the database's.
    ///
    /// # Panics
    ///
    /// By plan.
    pub async fn run<DB: Engine>(
        &self,
        tx: &mut Transaction<'_, DB>,
        id: &str,
    ) -> Result<(), AppError> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        let act = self
            .plan
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        // Polls that are pending however fast the database answers.
        tokio::task::yield_now().await;
        let insert = format!("INSERT INTO effects (id, run) VALUES ('{id}', {run})");
        DB::run(tx, &insert).await?;
        tokio::task::yield_now().await;
        if let (Some(Act::Hold(..)), Some(session)) = (&act, DB::SESSION) {
            let session = DB::number(tx, session).await?;
            self.session.store(session, Ordering::SeqCst);
        }
        match act {
            None => Ok(()),
            Some(Act::Refuse) => Err(AppError::Refused),
            Some(Act::Hold(here, go)) => {
                here.notify_one();
                let _ = go.acquire().await;
                Ok(())
            }
            Some(Act::HoldAndRefuse(here, go)) => {
                here.notify_one();
                let _ = go.acquire().await;
                Err(AppError::Refused)
            }
            Some(Act::Panic) => panic!("planned"),
            Some(Act::Hang) => std::future::pending().await,
        }
    }
}
