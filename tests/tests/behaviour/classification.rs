//! Which errors are retried, whatever they are wrapped in, and which are
//! rejected.

use std::error::Error as StdError;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use idempotent_runtime::{
    Disposition, Error, Outcome, Permanent, disposition, idempotent, transact,
};
use idempotent_tests::{AppError, Engine, Fresh, Kind, in_fresh_database};
use sqlx::pool::PoolOptions;
use sqlx::{Pool, Sqlite, Transaction};

on_servers!(codes_of_the_database);

/// A cut connection: retryable, on any database.
fn cut() -> sqlx::Error {
    sqlx::Error::Io(io::ErrorKind::ConnectionReset.into())
}

/// Not retryable.
fn plain() -> sqlx::Error {
    sqlx::Error::RowNotFound
}

#[derive(Debug, thiserror::Error)]
enum Wrapped {
    #[error("database")]
    From(#[from] sqlx::Error),
    #[error(transparent)]
    Ours(#[from] Error),
    #[error(transparent)]
    Transparent(sqlx::Error),
    #[error("deeper")]
    Deeper(#[source] Box<Wrapped>),
    #[error(transparent)]
    Anything(Box<dyn StdError + Send + Sync>),
    #[error(transparent)]
    Permanent(Permanent),
    #[error("permanent below")]
    PermanentBelow(#[source] Permanent),
}

/// Runs a handler whose first run fails with this error; says how often it
/// ran.
macro_rules! runs {
    ($pool:expr, $error:ty, $make:expr) => {{
        #[idempotent(key(id), skip(runs), scope = "classified")]
        async fn failing(
            tx: &mut Transaction<'_, Sqlite>,
            id: u32,
            runs: &AtomicUsize,
        ) -> Result<(), $error> {
            let _ = tx;
            if runs.fetch_add(1, Ordering::SeqCst) == 0 {
                return Err($make);
            }
            Ok(())
        }
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let id = line!() + u32::try_from(NEXT.fetch_add(1, Ordering::SeqCst)).unwrap();
        let runs = AtomicUsize::new(0);
        let outcome = transact!($pool, tx => failing(tx, id, &runs)).await;
        let runs = runs.load(Ordering::SeqCst);
        assert_eq!(outcome.is_ok(), runs == 2);
        runs
    }};
}

#[test]
fn a_retryable_error_is_found_in_whatever_it_is_wrapped() {
    in_fresh_database::<Sqlite>(async |db: &Fresh<Sqlite>| {
        let pool = &db.prepared(1).await;
        assert_eq!(runs!(pool, sqlx::Error, cut()), 2);
        assert_eq!(runs!(pool, sqlx::Error, plain()), 1);
        assert_eq!(runs!(pool, Error, cut().into()), 2);
        assert_eq!(runs!(pool, Error, plain().into()), 1);
        assert_eq!(runs!(pool, Wrapped, cut().into()), 2);
        assert_eq!(runs!(pool, Wrapped, plain().into()), 1);
        assert_eq!(runs!(pool, Wrapped, Wrapped::Transparent(cut())), 2);
        assert_eq!(runs!(pool, Wrapped, Wrapped::Transparent(plain())), 1);
        assert_eq!(runs!(pool, Wrapped, Wrapped::Ours(cut().into())), 2);
        assert_eq!(
            runs!(
                pool,
                Wrapped,
                Wrapped::Deeper(Box::new(Wrapped::Transparent(cut())))
            ),
            2
        );
        assert_eq!(
            runs!(
                pool,
                Wrapped,
                Wrapped::Deeper(Box::new(Wrapped::Ours(cut().into())))
            ),
            2
        );
        assert_eq!(runs!(pool, Wrapped, Wrapped::Anything(Box::new(cut()))), 2);
        assert_eq!(runs!(pool, Wrapped, Wrapped::Anything("text".into())), 1);
    });
}

#[test]
fn a_retryable_error_is_found_in_errors_without_a_type() {
    in_fresh_database::<Sqlite>(async |db: &Fresh<Sqlite>| {
        let pool = &db.prepared(1).await;
        assert_eq!(runs!(pool, anyhow::Error, cut().into()), 2);
        assert_eq!(runs!(pool, anyhow::Error, plain().into()), 1);
        assert_eq!(
            runs!(
                pool,
                anyhow::Error,
                anyhow::Error::new(cut()).context("one").context("two")
            ),
            2
        );
        assert_eq!(
            runs!(
                pool,
                anyhow::Error,
                anyhow::Error::new(Wrapped::Transparent(cut()))
            ),
            2
        );
        assert_eq!(runs!(pool, anyhow::Error, anyhow::anyhow!("text")), 1);
        assert_eq!(
            runs!(pool, Box<dyn StdError + Send + Sync>, cut().into()),
            2
        );
        assert_eq!(
            runs!(pool, Box<dyn StdError + Send + Sync>, plain().into()),
            1
        );
        assert_eq!(
            runs!(
                pool,
                Box<dyn StdError + Send + Sync>,
                Wrapped::Transparent(cut()).into()
            ),
            2
        );
        assert_eq!(runs!(pool, Box<dyn StdError>, cut().into()), 2);
        assert_eq!(runs!(pool, Box<dyn StdError>, "text".into()), 1);
    });
}

/// A handler and a consumer that know nothing of the error's type.
mod generic {
    use super::{
        AtomicUsize, Error, Ordering, Outcome, Pool, Sqlite, StdError, Transaction, idempotent,
        transact,
    };

    #[idempotent(key(id), skip(runs, make), scope = "generic")]
    async fn failing<E>(
        tx: &mut Transaction<'_, Sqlite>,
        id: u32,
        runs: &AtomicUsize,
        make: fn() -> E,
    ) -> Result<(), E>
    where
        E: StdError + From<Error> + Send + 'static,
    {
        let _ = tx;
        if runs.fetch_add(1, Ordering::SeqCst) == 0 {
            return Err(make());
        }
        Ok(())
    }

    pub(super) async fn runs<E>(pool: &Pool<Sqlite>, id: u32, make: fn() -> E) -> usize
    where
        E: StdError + From<Error> + Send + 'static,
    {
        let runs = AtomicUsize::new(0);
        let outcome: Result<Outcome<()>, E> =
            transact!(pool, tx => failing(tx, id, &runs, make)).await;
        drop(outcome);
        runs.load(Ordering::SeqCst)
    }
}

#[test]
fn a_retryable_error_is_found_in_generic_code() {
    in_fresh_database::<Sqlite>(async |db: &Fresh<Sqlite>| {
        let pool = db.prepared(1).await;
        assert_eq!(generic::runs::<sqlx::Error>(&pool, 1, cut).await, 2);
        assert_eq!(generic::runs::<sqlx::Error>(&pool, 2, plain).await, 1);
        assert_eq!(
            generic::runs::<Wrapped>(&pool, 3, || Wrapped::Transparent(cut())).await,
            2
        );
        assert_eq!(generic::runs::<Error>(&pool, 4, || cut().into()).await, 2);
    });
}

#[test]
fn what_is_declared_permanent_is_never_retried_and_rejected() {
    in_fresh_database::<Sqlite>(async |db: &Fresh<Sqlite>| {
        let pool = &db.prepared(1).await;
        let permanent = || Permanent::new(cut());
        assert_eq!(
            runs!(pool, Wrapped, Wrapped::Permanent(Permanent::new(cut()))),
            1
        );
        assert_eq!(
            runs!(
                pool,
                Wrapped,
                Wrapped::PermanentBelow(Permanent::new(cut()))
            ),
            1
        );
        assert_eq!(
            runs!(
                pool,
                anyhow::Error,
                anyhow::Error::new(Permanent::new(cut())).context("one")
            ),
            1
        );
        assert_eq!(
            runs!(
                pool,
                Box<dyn StdError + Send + Sync>,
                Permanent::new(cut()).into()
            ),
            1
        );

        let boxed: Box<dyn StdError + Send + Sync> = permanent().into();
        for error in [
            &permanent() as &(dyn StdError + 'static),
            &Wrapped::Permanent(permanent()),
            &Wrapped::PermanentBelow(permanent()),
            &Wrapped::Deeper(Box::new(Wrapped::Permanent(permanent()))),
            &*anyhow::Error::new(permanent())
                .context("one")
                .into_boxed_dyn_error(),
            &*boxed,
        ] {
            assert_eq!(disposition(error), Disposition::Reject, "{error:?}");
        }
    });
}

#[idempotent(key(id), scope = "keyless")]
async fn keyless(tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), Wrapped> {
    let _ = tx;
    Ok(())
}

#[test]
fn everything_is_redelivered_but_what_is_permanent_or_has_no_key() {
    in_fresh_database::<Sqlite>(async |db: &Fresh<Sqlite>| {
        let pool = &db.prepared(1).await;
        let error = transact!(pool, tx => keyless(tx, "")).await.unwrap_err();
        assert!(
            matches!(&error, Wrapped::Ours(error) if error.is_missing_key()),
            "{error:?}"
        );
        assert_eq!(disposition(&error), Disposition::Reject);
        let error: anyhow::Error = anyhow::Error::new(error).context("consumer");
        assert_eq!(disposition(&*error), Disposition::Reject);
        for error in [
            &cut() as &(dyn StdError + 'static),
            &plain(),
            &sqlx::Error::PoolTimedOut,
            &Wrapped::Transparent(plain()),
            &Error::from(plain()),
            &io::Error::other("x"),
        ] {
            assert_eq!(disposition(error), Disposition::Redeliver, "{error:?}");
        }
    });
}

#[idempotent(key(id), skip(runs, raise), scope = "raising")]
async fn raising<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    runs: &AtomicUsize,
    raise: &str,
) -> Result<(), AppError> {
    if runs.fetch_add(1, Ordering::SeqCst) == 0 {
        DB::run(tx, raise).await?;
    }
    Ok(())
}

/// Real errors of the server, by code.
async fn codes_of_the_database<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    let codes: &[(&str, bool)] = match DB::KIND {
        Kind::Postgres => &[
            ("40001", true),
            ("40P01", true),
            ("55P03", true),
            ("57P01", true),
            ("57P02", true),
            ("57P03", true),
            ("08000", true),
            ("08006", true),
            ("57014", false),
            ("23505", false),
            ("22021", false),
            ("P0001", false),
        ],
        _ => &[
            ("1213", true),
            ("1205", true),
            ("1020", true),
            ("1180", true),
            ("1927", true),
            ("1047", true),
            ("1053", true),
            ("1062", false),
            ("1969", false),
            ("1452", false),
            ("1644", false),
        ],
    };
    for &(code, is_retried) in codes {
        let state = match code {
            "1047" | "1053" => "08S01",
            _ => "HY000",
        };
        let raise = if DB::KIND == Kind::Postgres {
            format!("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{code}'; END $$")
        } else {
            format!("SIGNAL SQLSTATE '{state}' SET MYSQL_ERRNO = {code}, MESSAGE_TEXT = 'x'")
        };
        let runs = AtomicUsize::new(0);
        let outcome = transact!(&pool, tx => raising(tx, code, &runs, &raise)).await;
        let runs = runs.load(Ordering::SeqCst);
        assert_eq!(runs, if is_retried { 2 } else { 1 }, "{code}: {outcome:?}");
        assert_eq!(outcome.is_ok(), is_retried, "{code}");
    }
}

#[test]
fn a_busy_sqlite_is_retried() {
    in_fresh_database::<Sqlite>(async |db: &Fresh<Sqlite>| {
        db.prepare().await;
        let impatient = db.options.clone().busy_timeout(std::time::Duration::ZERO);
        let pool = PoolOptions::<Sqlite>::new()
            .max_connections(1)
            .connect_with(impatient)
            .await
            .unwrap();
        let mut writer = db.observer.begin_with("BEGIN IMMEDIATE").await.unwrap();
        Sqlite::run(&mut writer, "INSERT INTO letters (id) VALUES ('1')")
            .await
            .unwrap();

        // Within the handler: a reader that wants to write.
        let runs = AtomicUsize::new(0);
        let error = {
            let mut tx = pool.begin_with("BEGIN DEFERRED").await.unwrap();
            raising(&mut tx, "1", &runs, "").await.unwrap_err()
        };
        assert!(error.is_retryable(), "{error:?}");

        // At BEGIN: until the writer is done.
        let delivery = async {
            let attempts = idempotent_runtime::Attempts::on(&pool).attempts(50);
            transact!(attempts, tx => raising(tx, "1", &runs, "SELECT 1")).await
        };
        let commit = async {
            tokio::task::yield_now().await;
            writer.commit().await.unwrap();
        };
        let (outcome, ()) = tokio::join!(delivery, commit);
        assert_eq!(outcome.unwrap(), Outcome::Processed(()));
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    });
}
