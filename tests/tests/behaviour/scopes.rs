//! Who owns a key: several handlers, several crates, several names.

use std::sync::atomic::{AtomicUsize, Ordering};

use idempotent_runtime::{Outcome, idempotent, transact};
use idempotent_tests::{Engine, Fresh, in_fresh_database, on_paid};
use sqlx::{Sqlite, Transaction};

on_every_database!(
    two_handlers_of_one_event_run_once_each,
    a_moved_and_renamed_handler_keeps_its_keys_by_its_scope,
    two_instances_of_a_generic_handler_have_scopes_of_their_own,
    a_channel_in_the_key_lets_an_event_fan_out,
);

type Runs = [AtomicUsize; 2];

fn runs(runs: &Runs) -> [usize; 2] {
    [
        runs[0].load(Ordering::SeqCst),
        runs[1].load(Ordering::SeqCst),
    ]
}

#[idempotent(key(id), skip(ran), scope = "email")]
async fn email<DB: Engine>(tx: &mut Transaction<'_, DB>, id: i64, ran: &Runs) -> sqlx::Result<()> {
    let _ = tx;
    ran[0].fetch_add(1, Ordering::SeqCst);
    Ok(())
}

#[idempotent(key(id), skip(ran), scope = "audit")]
async fn audit<DB: Engine>(tx: &mut Transaction<'_, DB>, id: i64, ran: &Runs) -> sqlx::Result<()> {
    let _ = tx;
    ran[1].fetch_add(1, Ordering::SeqCst);
    Ok(())
}

async fn two_handlers_of_one_event_run_once_each<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let ran = Runs::default();
    for expected in [Outcome::Processed(()), Outcome::Duplicate] {
        let outcomes = transact!(&pool, tx => email(tx, 1, &ran), audit(tx, 1, &ran))
            .await
            .unwrap();
        assert_eq!(outcomes, (expected, expected));
    }
    assert_eq!(runs(&ran), [1, 1]);
    assert_eq!(
        db.texts("SELECT scope FROM processed_messages ORDER BY scope")
            .await,
        ["audit", "email"]
    );
}

mod before {
    use super::{Engine, Transaction, idempotent};

    #[idempotent(key(id), scope = "payments.paid")]
    pub(super) async fn handle<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: i64,
    ) -> sqlx::Result<()> {
        let _ = tx;
        Ok(())
    }
}

mod after {
    use super::{Engine, Transaction, idempotent};

    #[idempotent(key(order), scope = "payments.paid")]
    pub(super) async fn on_payment<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        order: &str,
    ) -> sqlx::Result<()> {
        let _ = tx;
        Ok(())
    }
}

async fn a_moved_and_renamed_handler_keeps_its_keys_by_its_scope<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let first = transact!(&pool, tx => before::handle(tx, 7)).await.unwrap();
    assert_eq!(first, Outcome::Processed(()));
    let second = transact!(&pool, tx => after::on_payment(tx, "7"))
        .await
        .unwrap();
    assert_eq!(second, Outcome::Duplicate);
}

trait Event {
    fn id(&self) -> i64;
}

struct Paid(i64);
struct Refunded(i64);

impl Event for Paid {
    fn id(&self) -> i64 {
        self.0
    }
}

impl Event for Refunded {
    fn id(&self) -> i64 {
        self.0
    }
}

macro_rules! handle {
    ($name:ident, $scope:literal) => {
        #[idempotent(key = "event.id()", scope = $scope)]
        async fn $name<DB: Engine, E: Event + Sync>(
            tx: &mut Transaction<'_, DB>,
            event: &E,
        ) -> sqlx::Result<()> {
            let _ = tx;
            Ok(())
        }
    };
}

handle!(handle_paid, "events.paid");
handle!(handle_refunded, "events.refunded");

async fn two_instances_of_a_generic_handler_have_scopes_of_their_own<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    for expected in [Outcome::Processed(()), Outcome::Duplicate] {
        let outcome = transact!(&pool, tx => handle_paid(tx, &Paid(1)))
            .await
            .unwrap();
        assert_eq!(outcome, expected);
        let outcome = transact!(&pool, tx => handle_refunded(tx, &Refunded(1)))
            .await
            .unwrap();
        assert_eq!(outcome, expected);
    }
}

#[idempotent(key(id), skip(_channel), scope = "by-event")]
async fn by_event<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: i64,
    _channel: &str,
) -> sqlx::Result<()> {
    let _ = tx;
    Ok(())
}

#[idempotent(key(id, channel), scope = "by-channel")]
async fn by_channel<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: i64,
    channel: &str,
) -> sqlx::Result<()> {
    let _ = (tx, channel);
    Ok(())
}

async fn a_channel_in_the_key_lets_an_event_fan_out<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let (mut coarse, mut fine) = (Vec::new(), Vec::new());
    for channel in ["email", "push"] {
        coarse.push(
            transact!(&pool, tx => by_event(tx, 1, channel))
                .await
                .unwrap(),
        );
        fine.push(
            transact!(&pool, tx => by_channel(tx, 1, channel))
                .await
                .unwrap(),
        );
    }
    assert_eq!(coarse, [Outcome::Processed(()), Outcome::Duplicate]);
    assert_eq!(fine, [Outcome::Processed(()), Outcome::Processed(())]);
}

mod handlers {
    use super::{AtomicUsize, Ordering, Sqlite, Transaction, idempotent};

    #[idempotent(key(id), skip(runs))]
    pub(super) async fn on_paid(
        tx: &mut Transaction<'_, Sqlite>,
        id: i64,
        runs: &AtomicUsize,
    ) -> sqlx::Result<()> {
        let _ = tx;
        runs.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[test]
fn handlers_of_one_name_in_two_crates_do_not_meet() {
    in_fresh_database::<Sqlite>(async |db: &Fresh<Sqlite>| {
        let pool = db.prepared(1).await;
        let ran = AtomicUsize::new(0);
        for expected in [Outcome::Processed(()), Outcome::Duplicate] {
            assert_eq!(
                transact!(&pool, tx => on_paid(tx, 1, &ran)).await.unwrap(),
                expected
            );
            let outcome = transact!(&pool, tx => handlers::on_paid(tx, 1, &ran))
                .await
                .unwrap();
            assert_eq!(outcome, expected);
        }
        assert_eq!(ran.load(Ordering::SeqCst), 2);
        assert_eq!(
            db.texts("SELECT scope FROM processed_messages ORDER BY scope")
                .await,
            [
                "behaviour::scopes::handlers::on_paid(id)",
                "idempotent_tests::on_paid::on_paid(id)",
            ]
        );
    });
}

struct First;
struct Second;

impl First {
    #[idempotent(key(id))]
    async fn handle(
        tx: &mut Transaction<'_, Sqlite>,
        id: i64,
    ) -> Result<(), idempotent_runtime::Error> {
        let _ = tx;
        Ok(())
    }
}

impl Second {
    #[idempotent(key(id))]
    async fn handle(
        tx: &mut Transaction<'_, Sqlite>,
        id: i64,
    ) -> Result<(), idempotent_runtime::Error> {
        let _ = tx;
        Ok(())
    }
}

/// The attribute cannot see the type around an associated function.
#[test]
fn a_default_scope_that_two_handlers_share_is_an_error_that_names_both() {
    in_fresh_database::<Sqlite>(async |db: &Fresh<Sqlite>| {
        let pool = db.prepared(1).await;
        let first = transact!(&pool, tx => First::handle(tx, 1)).await.unwrap();
        assert_eq!(first, Outcome::Processed(()));

        let error = transact!(&pool, tx => Second::handle(tx, 1))
            .await
            .unwrap_err();
        assert!(!error.is_retryable());
        assert!(
            error
                .to_string()
                .contains("`behaviour::scopes::handle(id)`"),
            "{error}"
        );
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(
            source.matches("behaviour/scopes.rs:").count(),
            2,
            "{source}"
        );
        assert_eq!(
            idempotent_runtime::disposition(&error),
            idempotent_runtime::Disposition::Redeliver,
            "nothing is lost"
        );

        let again = transact!(&pool, tx => First::handle(tx, 2)).await.unwrap();
        assert_eq!(again, Outcome::Processed(()));
        assert_eq!(db.rows("processed_messages").await, 2);
    });
}
