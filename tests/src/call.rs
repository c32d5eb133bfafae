//! One call of a handler, which may have to come again, and what is stored of it.

use std::marker::PhantomData;

use idempotent_runtime::{Attempts, Outcome, transact};
use sqlx::{Pool, Transaction};

use crate::deliveries::{Delivery, Known};
use crate::double::Double;
use crate::engine::Engine;
use crate::fresh::Fresh;
use crate::guarded::AppError;

/// A call of the handlers `G`.
pub struct Call<'a, DB: Engine, G> {
    db: &'a Fresh<DB>,
    name: String,
    ids: Vec<String>,
    /// So many of them were processed before.
    known: usize,
    earlier_runs: usize,
    double: Double,
    handlers: PhantomData<G>,
}

impl<'a, DB: Engine, G: Delivery<DB>> Call<'a, DB, G> {
    /// Processes what is to be known of the messages that have this name.
    ///
    /// # Panics
    ///
    /// If it cannot.
    pub async fn new(db: &'a Fresh<DB>, pool: &Pool<DB>, name: &str, known: Known) -> Self {
        let (ids, double) = (G::ids(name), Double::new());
        let earlier = known.of(&ids);
        if !earlier.is_empty() {
            let outcome = transact!(pool, tx => G::process_earlier(tx, earlier, &double)).await;
            assert_eq!(outcome.expect("it is new"), Outcome::Processed(()));
        }
        Self {
            db,
            name: name.to_owned(),
            known: earlier.len(),
            ids,
            earlier_runs: double.runs(),
            double,
            handlers: PhantomData,
        }
    }

    /// The name of its messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The messages that are new.
    #[must_use]
    pub fn fresh(&self) -> &[String] {
        &self.ids[self.known..]
    }

    /// Returns how often a message was run, also where that was rolled back.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.double.runs() - self.earlier_runs
    }

    /// Processes them in a transaction.
    ///
    /// # Errors
    ///
    /// The handler's.
    pub async fn process(&self, tx: &mut Transaction<'_, DB>) -> Result<Outcome<()>, AppError> {
        G::process(tx, &self.ids, &self.double).await
    }

    /// Processes them with `transact!`.
    ///
    /// # Errors
    ///
    /// The handler's.
    pub async fn transact(&self, attempts: Attempts<'_, DB>) -> Result<Outcome<()>, AppError> {
        transact!(attempts, tx => G::process(tx, &self.ids, &self.double)).await
    }

    /// Processes them in a transaction that is begun and committed by hand.
    ///
    /// # Errors
    ///
    /// The handler's, or the database's.
    pub async fn by_hand(&self, pool: &Pool<DB>) -> Result<Outcome<()>, AppError> {
        let mut tx = pool.begin().await?;
        let outcome = self.process(&mut tx).await?;
        tx.commit().await?;
        Ok(outcome)
    }

    /// Asserts that it was processed, or is a duplicate if all was known.
    ///
    /// # Panics
    ///
    /// If it is not so.
    pub fn assert_outcome(&self, outcome: Result<Outcome<()>, AppError>) {
        let outcome = outcome.unwrap_or_else(|error| panic!("{}: {error:?}", self.name));
        let is_known = self.fresh().is_empty();
        assert_eq!(outcome.is_duplicate(), is_known, "{}", self.name);
    }

    /// Says whether the new messages have their keys and effects.
    ///
    /// # Panics
    ///
    /// If some have them and some have not, or one has them twice, or a known
    /// one has others than before.
    pub async fn is_processed(&self) -> bool {
        for id in &self.ids[..self.known] {
            assert_eq!(self.db.stored(id).await, (G::EARLIER_KEYS, 1), "{id}");
        }
        let mut processed = 0;
        for id in self.fresh() {
            match self.db.stored(id).await {
                (0, 0) => {}
                (keys, 1) if keys == G::KEYS => processed += 1,
                stored => panic!("{id}: keys and effects {stored:?}"),
            }
        }
        let all = self.fresh().len();
        assert!(processed == 0 || processed == all, "{}", self.name);
        processed == all
    }

    /// Asserts that each message has its keys and its effect once, and that its
    /// effect is that of the run whose value a duplicate is given.
    ///
    /// # Panics
    ///
    /// If it is not so.
    pub async fn assert_processed_once(&self, pool: &Pool<DB>) {
        assert!(self.is_processed().await, "{}", self.name);
        for id in &self.ids {
            if let Some(run) = G::recalled(pool, id).await {
                let effects = format!("SELECT run FROM effects WHERE id = '{id}'");
                assert_eq!(Ok(self.db.number(&effects).await), run.try_into(), "{id}");
            }
        }
    }

    /// Comes again: it runs, unless it was processed; then it is processed once.
    ///
    /// # Panics
    ///
    /// If it is not so.
    pub async fn assert_comes_again(&self, pool: &Pool<DB>) {
        let (was_processed, runs) = (self.is_processed().await, self.runs());
        let outcome = self.transact(Attempts::on(pool)).await;
        let outcome = outcome.unwrap_or_else(|error| panic!("{}: {error:?}", self.name));
        assert_eq!(outcome.is_duplicate(), was_processed, "{}", self.name);
        let expected = if was_processed { 0 } else { self.fresh().len() };
        assert_eq!(self.runs() - runs, expected, "{}", self.name);
        self.assert_processed_once(pool).await;
    }
}
