//! Who owns a key: several handlers, several crates, several names.

use std::sync::atomic::{AtomicUsize, Ordering};

use idempotent_runtime::{Outcome, idempotent, transact};
use idempotent_tests::{Engine, Fresh, in_fresh_database, on_paid};
use sqlx::{Sqlite, Transaction};

on_every_database!(
    two_handlers_of_one_event_run_once_each,
    a_moved_and_renamed_handler_keeps_its_keys_by_its_scope,
    two_handlers_of_one_macro_have_scopes_of_their_own,
    the_instances_of_a_generic_handler_share_its_scope,
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

async fn two_handlers_of_one_macro_have_scopes_of_their_own<DB: Engine>(db: &Fresh<DB>) {
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

#[idempotent(key(id), scope = "any-kind")]
async fn any_kind<DB: Engine, E: Event + Sync>(
    tx: &mut Transaction<'_, DB>,
    id: i64,
    _event: &E,
) -> sqlx::Result<()> {
    let _ = tx;
    Ok(())
}

/// A written scope is one for all instances: what tells them apart is in the key.
async fn the_instances_of_a_generic_handler_share_its_scope<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let paid = transact!(&pool, tx => any_kind(tx, 1, &Paid(1))).await;
    assert_eq!(paid.unwrap(), Outcome::Processed(()));
    let refunded = transact!(&pool, tx => any_kind(tx, 1, &Refunded(1))).await;
    assert_eq!(refunded.unwrap(), Outcome::Duplicate);
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

type Done = Result<(), idempotent_runtime::Error>;
type Tx<'c> = Transaction<'c, Sqlite>;

struct First;
struct Generic<T>(T);

impl First {
    #[idempotent(key(id))]
    async fn handle(tx: &mut Tx<'_>, id: i64) -> Done {
        let _ = tx;
        Ok(())
    }
}

impl<T> Generic<T> {
    #[idempotent(key(id))]
    async fn handle(tx: &mut Tx<'_>, id: i64) -> Done {
        let _ = tx;
        Ok(())
    }
}

trait Handle {
    #[idempotent(key(id))]
    async fn handle(tx: &mut Tx<'_>, id: i64) -> Done {
        let _ = tx;
        Ok(())
    }
}

impl Handle for u8 {}

/// Both have one line and column.
macro_rules! inner {
    ($outer:ident) => {
        async fn $outer(
            tx: &mut Tx<'_>,
            id: i64,
        ) -> Result<Outcome<()>, idempotent_runtime::Error> {
            #[idempotent(key(id))]
            async fn handle(tx: &mut Tx<'_>, id: i64) -> Done {
                let _ = tx;
                Ok(())
            }
            handle(tx, id).await
        }
    };
}

inner!(outer);

#[idempotent(key(id))]
async fn handle(tx: &mut Tx<'_>, id: i64) -> Done {
    let _ = tx;
    Ok(())
}

/// The attribute cannot see what is around a function. All of these would have
/// the scope of the free function `handle`; the first of them is refused as well.
#[test]
fn a_default_scope_is_that_of_a_free_function() {
    in_fresh_database::<Sqlite>(async |db: &Fresh<Sqlite>| {
        let pool = db.prepared(1).await;
        let refused = [
            transact!(&pool, tx => First::handle(tx, 1)).await,
            transact!(&pool, tx => First::handle(tx, 2)).await,
            transact!(&pool, tx => Generic::<u8>::handle(tx, 1)).await,
            transact!(&pool, tx => Generic::<i8>::handle(tx, 1)).await,
            transact!(&pool, tx => <u8 as Handle>::handle(tx, 1)).await,
            transact!(&pool, tx => outer(tx, 1)).await,
        ];
        for error in refused.map(Result::unwrap_err) {
            let text = error.to_string();
            assert!(
                text.starts_with(
                    "default scope `behaviour::scopes::handle(id)` would not be its own: `"
                ),
                "{text}"
            );
            assert!(
                text.contains("handle` is not a free function of its module"),
                "{text}"
            );
            assert!(text.ends_with("write `scope = \"…\"`"), "{text}");
            assert!(!error.is_retryable());
            assert_eq!(
                idempotent_runtime::disposition(&error),
                idempotent_runtime::Disposition::Redeliver,
                "nothing is lost"
            );
        }
        assert_eq!(db.rows("processed_messages").await, 0);

        let first = transact!(&pool, tx => handle(tx, 1)).await.unwrap();
        assert_eq!(first, Outcome::Processed(()));
        assert_eq!(db.rows("processed_messages").await, 1);
    });
}

mod earlier {
    use super::{Done, Tx, idempotent};

    #[idempotent(key(id))]
    pub(super) async fn pay(tx: &mut Tx<'_>, id: i64) -> Done {
        let _ = tx;
        Ok(())
    }
}

mod later {
    use super::{Done, Tx, idempotent};

    /// Moved.
    #[idempotent(key(id))]
    pub(super) async fn pay(tx: &mut Tx<'_>, id: i64) -> Done {
        let _ = tx;
        Ok(())
    }

    /// Moved, renamed, with another name for its key, and it says so.
    #[idempotent(key(order), was("behaviour::scopes::earlier::pay(id)"))]
    pub(super) async fn on_payment(tx: &mut Tx<'_>, order: &str) -> Done {
        let _ = tx;
        Ok(())
    }
}

/// Crate, module, function and the key's parts are in it: whoever changes one of
/// them runs again what was processed, unless `was` names what it was.
#[test]
fn without_a_scope_a_moved_handler_needs_was() {
    in_fresh_database::<Sqlite>(async |db: &Fresh<Sqlite>| {
        let pool = db.prepared(1).await;
        let first = transact!(&pool, tx => earlier::pay(tx, 1)).await.unwrap();
        assert_eq!(first, Outcome::Processed(()));
        let said_so = transact!(&pool, tx => later::on_payment(tx, "1"))
            .await
            .unwrap();
        assert_eq!(said_so, Outcome::Duplicate);
        let forgot = transact!(&pool, tx => later::pay(tx, 1)).await.unwrap();
        assert_eq!(forgot, Outcome::Processed(()));
        assert_eq!(
            db.texts("SELECT scope FROM processed_messages ORDER BY scope")
                .await,
            [
                "behaviour::scopes::earlier::pay(id)",
                "behaviour::scopes::later::pay(id)",
            ]
        );
        let new = transact!(&pool, tx => later::on_payment(tx, "2"))
            .await
            .unwrap();
        assert_eq!(new, Outcome::Processed(()));
        let back = transact!(&pool, tx => earlier::pay(tx, 2)).await.unwrap();
        assert_eq!(back, Outcome::Duplicate);
    });
}
