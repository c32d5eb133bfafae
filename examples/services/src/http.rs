//! What the HTTP services share: the command line, the pool, and serving until they are to stop.

use std::env;
use std::error::Error as StdError;
use std::time::Duration;

use axum::Router;
use idempotent_runtime::{Error, migrate};
use lexopt::{Arg, Parser, ValueExt as _};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::net::TcpListener;

use crate::database;
use crate::options::DATABASE;
use crate::stop::Stop;

/// What a service is asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Of Postgres.
    pub database: String,
    /// Address and port.
    pub listen: String,
    /// Show no line for each request.
    pub is_quiet: bool,
}

/// What a service is, for its help.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// As it is started.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// The variable of the environment that holds its secret: a command line can be read by others.
    pub secret: &'static str,
    /// What is in it.
    pub secret_is: &'static str,
}

impl Options {
    /// Reads the command line. Asked for help, it prints that and ends the program.
    ///
    /// # Errors
    ///
    /// Names what it does not understand.
    pub fn from_args(program: &Program) -> Result<Self, lexopt::Error> {
        let mut options = Self {
            database: env::var("DATABASE_URL").unwrap_or_else(|_| DATABASE.to_owned()),
            listen: "127.0.0.1:8080".to_owned(),
            is_quiet: false,
        };
        let mut args = Parser::from_env();
        while let Some(arg) = args.next()? {
            match arg {
                Arg::Long("database") => options.database = args.value()?.string()?,
                Arg::Long("listen") => options.listen = args.value()?.string()?,
                Arg::Long("quiet") => options.is_quiet = true,
                Arg::Long("help") | Arg::Short('h') => {
                    println!("{}", program.help());
                    std::process::exit(0);
                }
                other => return Err(other.unexpected()),
            }
        }
        Ok(options)
    }
}

impl Program {
    /// Reads its secret.
    ///
    /// # Errors
    ///
    /// There is none: the service is not to start.
    pub fn secret(&self) -> Result<String, String> {
        match env::var(self.secret) {
            Ok(secret) if !secret.is_empty() => Ok(secret),
            _ => Err(format!("set {}: {}", self.secret, self.secret_is)),
        }
    }

    fn help(&self) -> String {
        let Self {
            name,
            about,
            secret,
            secret_is,
        } = self;
        format!(
            "{about}\n\n\
             usage: {secret}=… {name} [options]\n\n\
             {secret}: {secret_is}\n\n\
             --database URL     Postgres; or DATABASE_URL in the environment [{DATABASE}]\n\
             --listen ADDRESS   [127.0.0.1:8080]\n\
             --quiet            show no line for each request\n\n\
             It stops at Ctrl-C."
        )
    }
}

/// Connects, and makes the table of keys unless it exists.
///
/// # Errors
///
/// The database cannot be used.
pub async fn database(url: &str) -> Result<PgPool, Error> {
    let pool = PgPoolOptions::new()
        // Somebody waits for the answer: rather 503 than late.
        .acquire_timeout(Duration::from_secs(3))
        // A stale connection is replaced by `transact!` before anything ran: no ping at each acquire.
        .test_before_acquire(false)
        .connect(url)
        .await?;
    migrate(&pool).await?;
    Ok(pool)
}

/// Serves until Ctrl-C or SIGTERM, and prunes keys meanwhile. Then it takes no more connections, and
/// ends the requests that it has begun, if they end [within grace](Stop::within_grace). Those that do
/// not end with the program: what of them is not committed then is rolled back, and their clients send
/// them again.
///
/// # Errors
///
/// The address cannot be listened on, or signals cannot.
pub async fn serve(
    listen: &str,
    router: Router,
    pool: &PgPool,
) -> Result<(), Box<dyn StdError + Send + Sync>> {
    let listener = TcpListener::bind(listen).await?;
    let [mut asked, mut stop] = [Stop::listen()?, Stop::listen()?];
    let pruner = database::prune(pool)?;
    println!(
        "listening on http://{}; Ctrl-C stops",
        listener.local_addr()?
    );
    let served = async {
        axum::serve(listener, router)
            .with_graceful_shutdown(async move { asked.asked().await })
            .await?;
        pruner.stop().await;
        pool.close().await;
        Ok(())
    };
    stop.within_grace(served).await.unwrap_or(Ok(()))
}
