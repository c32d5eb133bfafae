//! What a handler should not do, and what comes of it. The tests print the
//! table that they assert: run them with `--nocapture`.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use idempotent_runtime::Outcome;
use idempotent_tests::{AppError, Engine, Fresh, Guarded, Kind, Savepoint, caught, until};
use sqlx::{Connection, Pool, Transaction};
use tokio::sync::{Notify, Semaphore};

with_every_guard!(misdeeds);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Misdeed {
    SwallowedError,
    OwnCommit,
    OwnCommitAndBegin,
    OwnRollback,
    RollbackPastTheClaim,
    OwnSavepointRolledBack,
    Ddl,
    SwallowedDeadlock,
    Panic,
    CutOff,
    CutOffThenCommit,
    ErrThenCommit,
    OwnCommitThenErr,
    OwnCommitAndBeginThenErr,
    OwnRollbackThenErr,
}

impl Misdeed {
    const ALL: [Self; 15] = [
        Self::SwallowedError,
        Self::OwnCommit,
        Self::OwnCommitAndBegin,
        Self::OwnRollback,
        Self::RollbackPastTheClaim,
        Self::OwnSavepointRolledBack,
        Self::Ddl,
        Self::SwallowedDeadlock,
        Self::Panic,
        Self::CutOff,
        Self::CutOffThenCommit,
        Self::ErrThenCommit,
        Self::OwnCommitThenErr,
        Self::OwnCommitAndBeginThenErr,
        Self::OwnRollbackThenErr,
    ];
}

impl Display for Misdeed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SwallowedError => "swallows the error of a statement",
            Self::OwnCommit => "commits",
            Self::OwnCommitAndBegin => "commits, begins and writes on",
            Self::OwnRollback => "rolls back",
            Self::RollbackPastTheClaim => "rolls back to the caller's savepoint",
            Self::OwnSavepointRolledBack => "rolls back to a savepoint of its own (no misdeed)",
            Self::Ddl => "creates a table",
            Self::SwallowedDeadlock => "swallows a deadlock and writes on",
            Self::Panic => "panics",
            Self::CutOff => "is cut off",
            Self::CutOffThenCommit => "is cut off, and the caller commits",
            Self::ErrThenCommit => "returns `Err`, and the caller commits",
            Self::OwnCommitThenErr => "commits, then returns `Err`",
            Self::OwnCommitAndBeginThenErr => "commits and begins, then returns `Err`",
            Self::OwnRollbackThenErr => "rolls back, then returns `Err`",
        })
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Got {
    Processed,
    Lost,
    OwnError,
    Panic,
    Nothing,
}

impl Display for Got {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Processed => "`Processed`",
            Self::Lost => "`Err`, transaction lost",
            Self::OwnError => "`Err`, the handler's own",
            Self::Panic => "the panic",
            Self::Nothing => "nothing",
        })
    }
}

/// What the caller gets; keys and effects after it committed on `Ok` and
/// rolled back on anything else. `None`: the database has no such thing.
#[allow(clippy::match_same_arms, reason = "each arm has a reason of its own")]
fn expected<G: Guarded>(misdeed: Misdeed, kind: Kind) -> Option<(Got, i64, i64)> {
    let is_savepoint = G::SCOPE == Savepoint::SCOPE;
    Some(match (misdeed, kind) {
        // An error aborts the transaction on Postgres, and only its statement elsewhere.
        (Misdeed::SwallowedError, Kind::Postgres) => (Got::Lost, 0, 0),
        (Misdeed::SwallowedError | Misdeed::OwnSavepointRolledBack, _) => (Got::Processed, 1, 1),
        // Here the effect may be half of one: nothing but an alarm helps.
        (Misdeed::OwnCommit | Misdeed::OwnCommitAndBegin, _) => (Got::Lost, 1, 1),
        (Misdeed::OwnRollback | Misdeed::RollbackPastTheClaim, _) => (Got::Lost, 0, 0),
        // DDL commits on MariaDB.
        (Misdeed::Ddl, Kind::MariaDb) => (Got::Lost, 1, 1),
        (Misdeed::Ddl, _) => (Got::Processed, 1, 1),
        (Misdeed::SwallowedDeadlock, Kind::Postgres) => (Got::Lost, 0, 0),
        // The deadlock has rolled back all of it: what is written then commits itself.
        (Misdeed::SwallowedDeadlock, Kind::MariaDb) => (Got::Lost, 0, 1),
        (Misdeed::SwallowedDeadlock, Kind::Sqlite) => return None,
        (Misdeed::Panic, _) => (Got::Panic, 0, 0),
        (Misdeed::CutOff, _) => (Got::Nothing, 0, 0),
        (Misdeed::CutOffThenCommit, _) if is_savepoint => (Got::Nothing, 0, 0),
        (Misdeed::CutOffThenCommit, _) => (Got::Nothing, 1, 1),
        (Misdeed::ErrThenCommit, _) if is_savepoint => (Got::OwnError, 0, 0),
        (Misdeed::ErrThenCommit, _) => (Got::OwnError, 0, 1),
        // A redelivery would find the key, and never run what is missing.
        (Misdeed::OwnCommitThenErr | Misdeed::OwnCommitAndBeginThenErr, _) => (Got::Lost, 1, 1),
        (Misdeed::OwnRollbackThenErr, _) => (Got::OwnError, 0, 0),
    })
}

async fn misdeeds<DB: Engine, G: Guarded>(db: &Fresh<DB>) {
    let pool = db.prepared(4).await;
    let guard = if G::SCOPE == Savepoint::SCOPE {
        "savepoint"
    } else {
        "verify"
    };
    for misdeed in Misdeed::ALL {
        let Some(expected) = expected::<G>(misdeed, DB::KIND) else {
            println!("| {misdeed} | {:?} | {guard} | – | – | – |", DB::KIND);
            continue;
        };
        let id = format!("{misdeed:?}");
        let got = commit::<DB, G>(db, &pool, misdeed, &id).await;
        db.until_idle().await;
        let (keys, effects) = db.stored(&id).await;
        println!(
            "| {misdeed} | {:?} | {guard} | {got} | {keys} | {effects} |",
            DB::KIND
        );
        assert_eq!((got, keys, effects), expected, "{misdeed}");
        pool_is_sound(db, &pool, &id).await;
    }
}

/// No connection came back with something left in it.
async fn pool_is_sound<DB: Engine>(db: &Fresh<DB>, pool: &Pool<DB>, id: &str) {
    for n in 0..pool.size() {
        let mut conn = pool.acquire().await.unwrap();
        let letter = format!("INSERT INTO letters (id) VALUES ('{id}-{n}')");
        DB::run(&mut conn, &letter).await.unwrap();
        let mut tx = conn.begin().await.unwrap();
        let letter = format!("INSERT INTO letters (id) VALUES ('{id}-{n}')");
        DB::run(&mut tx, &letter).await.unwrap();
        tx.commit().await.unwrap();
        let letters = format!("SELECT count(*) FROM letters WHERE id = '{id}-{n}'");
        assert_eq!(db.number(&letters).await, 2, "{id}: later writes");
    }
}

/// Commits the misdeed, and does what a caller does.
async fn commit<DB: Engine, G: Guarded>(
    db: &Fresh<DB>,
    pool: &Pool<DB>,
    misdeed: Misdeed,
    id: &str,
) -> Got {
    let mut tx = pool.begin().await.unwrap();
    DB::run(&mut tx, "SAVEPOINT caller").await.unwrap();
    let hangs = Notify::new();
    let body =
        async |tx: &mut Transaction<'_, DB>| misbehave(db, pool, tx, misdeed, id, &hangs).await;
    let outcome = tokio::select! {
        outcome = caught(G::deliver(&mut tx, id, body)) => Some(outcome),
        () = hangs.notified() => None,
    };
    let (got, commits) = match outcome {
        None => (Got::Nothing, misdeed == Misdeed::CutOffThenCommit),
        Some(Err(_)) => (Got::Panic, false),
        Some(Ok(Ok(outcome))) => {
            assert_eq!(outcome, Outcome::Processed(()));
            (Got::Processed, true)
        }
        Some(Ok(Err(error))) if error.is_transaction_lost() => (Got::Lost, false),
        Some(Ok(Err(AppError::Refused))) => (Got::OwnError, misdeed == Misdeed::ErrThenCommit),
        Some(Ok(Err(error))) => panic!("{misdeed}: {error:?}"),
    };
    if commits {
        tx.commit().await.unwrap();
    } else {
        // It may fail where the handler left nothing to roll back.
        let _ = tx.rollback().await;
    }
    got
}

async fn misbehave<DB: Engine>(
    db: &Fresh<DB>,
    pool: &Pool<DB>,
    tx: &mut Transaction<'_, DB>,
    misdeed: Misdeed,
    id: &str,
    hangs: &Notify,
) -> Result<(), AppError> {
    let effect = format!("INSERT INTO effects (id) VALUES ('{id}')");
    if misdeed == Misdeed::SwallowedDeadlock {
        be_the_victim(db, pool, tx).await;
        let _ = DB::run(tx, &effect).await;
        return Ok(());
    }
    DB::run(tx, &effect).await?;
    match misdeed {
        Misdeed::SwallowedError => {
            assert!(DB::run(tx, "INSERT INTO nowhere VALUES (1)").await.is_err());
        }
        Misdeed::OwnCommit => drop(DB::run(tx, "COMMIT").await?),
        Misdeed::OwnCommitAndBegin => {
            DB::run(tx, "COMMIT").await?;
            DB::run(tx, "BEGIN").await?;
            DB::run(tx, "INSERT INTO letters (id) VALUES ('written on')").await?;
        }
        Misdeed::OwnRollback => drop(DB::run(tx, "ROLLBACK").await?),
        Misdeed::RollbackPastTheClaim => drop(DB::run(tx, "ROLLBACK TO SAVEPOINT caller").await?),
        Misdeed::OwnSavepointRolledBack => {
            let mut nested = (**tx).begin().await?;
            assert!(
                DB::run(&mut nested, "INSERT INTO nowhere VALUES (1)")
                    .await
                    .is_err()
            );
            nested.rollback().await?;
        }
        Misdeed::Ddl => drop(DB::run(tx, &format!("CREATE TABLE new_{id} (id int)")).await?),
        Misdeed::Panic => panic!("planned"),
        Misdeed::CutOff | Misdeed::CutOffThenCommit => {
            hangs.notify_one();
            std::future::pending::<()>().await;
        }
        Misdeed::ErrThenCommit => return Err(AppError::Refused),
        Misdeed::OwnCommitThenErr => {
            DB::run(tx, "COMMIT").await?;
            return Err(AppError::Refused);
        }
        Misdeed::OwnCommitAndBeginThenErr => {
            DB::run(tx, "COMMIT").await?;
            DB::run(tx, "BEGIN").await?;
            return Err(AppError::Refused);
        }
        Misdeed::OwnRollbackThenErr => {
            DB::run(tx, "ROLLBACK").await?;
            return Err(AppError::Refused);
        }
        Misdeed::SwallowedDeadlock => {}
    }
    Ok(())
}

/// Meets another transaction in a deadlock, loses, and says nothing.
async fn be_the_victim<DB: Engine>(db: &Fresh<DB>, pool: &Pool<DB>, tx: &mut Transaction<'_, DB>) {
    if DB::KIND == Kind::Postgres {
        // Who looks first is the victim.
        DB::run(tx, "SET LOCAL deadlock_timeout = '10ms'")
            .await
            .unwrap();
    }
    let (holds, done) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let other = tokio::spawn({
        let (pool, holds, done) = (pool.clone(), Arc::clone(&holds), Arc::clone(&done));
        async move {
            let mut other = pool.begin().await.unwrap();
            // Who has written less is the victim on MariaDB.
            for n in 0..50 {
                let row = format!("INSERT INTO letters (id) VALUES ('heavier-{n}')");
                DB::run(&mut other, &row).await.unwrap();
            }
            DB::run(
                &mut other,
                "UPDATE accounts SET amount = amount + 1 WHERE id = 2",
            )
            .await
            .unwrap();
            holds.notify_one();
            DB::run(
                &mut other,
                "/* waits */ UPDATE accounts SET amount = amount + 1 WHERE id = 1",
            )
            .await
            .unwrap();
            let _ = done.acquire().await;
            other.rollback().await.unwrap();
        }
    });
    DB::run(tx, "UPDATE accounts SET amount = amount + 1 WHERE id = 1")
        .await
        .unwrap();
    holds.notified().await;
    let waits = match DB::KIND {
        Kind::MariaDb => {
            "SELECT count(*) FROM information_schema.processlist WHERE db = database() AND info LIKE '%waits%UPDATE%' \
             AND id <> connection_id()"
        }
        _ => DB::WAITING.unwrap(),
    };
    until("the other transaction waits", async || {
        db.number(waits).await > 0
    })
    .await;
    let lost = DB::run(tx, "UPDATE accounts SET amount = amount + 1 WHERE id = 2").await;
    assert!(lost.is_err(), "it is the victim");
    done.add_permits(1);
    other.await.unwrap();
}
