//! Says whether a server lets us do what the tests do.

use std::process::ExitCode;

use idempotent_tests::{Engine, Kind};
use sqlx::{ConnectOptions, Connection, MySql, Postgres};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let checked = match &*arguments {
        [url] => check(url).await,
        _ => Err("usage: check-server <url>".to_owned()),
    };
    match checked {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{}", reason.replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}

async fn check(url: &str) -> Result<(), String> {
    match url.split(':').next() {
        Some("postgres" | "postgresql") => databases::<Postgres>(url).await.map(drop),
        Some("mysql" | "mariadb") => {
            let mut conn = databases::<MySql>(url).await?;
            let engine = "SELECT count(*) FROM information_schema.engines \
                 WHERE engine = 'InnoDB' AND support IN ('YES', 'DEFAULT')";
            match MySql::number(&mut conn, engine).await {
                Ok(1..) => Ok(()),
                Ok(_) => Err("the server has no InnoDB".to_owned()),
                Err(error) => Err(format!("cannot list the storage engines: {error}")),
            }
        }
        _ => Err("the url starts with neither `postgres:` nor `mysql:`".to_owned()),
    }
}

/// Connects, makes a database and a role, and drops them.
async fn databases<DB: Engine>(url: &str) -> Result<DB::Connection, String> {
    let options: <DB::Connection as Connection>::Options = url
        .parse()
        .map_err(|error: sqlx::Error| format!("cannot read the url: {error}"))?;
    let mut conn = options
        .connect()
        .await
        .map_err(|error| format!("cannot connect: {error}"))?;
    let name = format!("idempotent_test_check_{}", std::process::id());
    let role = match DB::KIND {
        Kind::MariaDb => "USER",
        Kind::Postgres | Kind::Sqlite => "ROLE",
    };
    for (what, kind) in [("a database", "DATABASE"), ("a role", role)] {
        for (verb, statement) in [("create", "CREATE"), ("drop", "DROP")] {
            DB::run(&mut conn, &format!("{statement} {kind} {name}"))
                .await
                .map_err(|error| format!("cannot {verb} {what}: {error}"))?;
        }
    }
    Ok(conn)
}
