//! The other end: a transfer service with a transactional outbox, and the relay that publishes it to
//! RabbitMQ, where `rabbitmq.rs` consumes.
//!
//! - Ours: nothing. This is where duplicates come from.
//! - A transfer and its event are one transaction, so that no event is lost, and none is told of a
//!   transfer that was rolled back.
//! - The relay publishes, waits for RabbitMQ's confirmation, and notes it. If it dies in between, it
//!   publishes again: at least once. With `CRASH_AFTER=7` in the environment it dies so, after the
//!   batch of ten that has the seventh event.
//!
//! ```text
//! cargo run -p idempotent-services --features rabbitmq --bin outbox -- --publish 20
//! ```

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use idempotent_services::notify::TransferCompleted;
use idempotent_services::options::{Options, Program};
use idempotent_services::rabbit;
use idempotent_services::stop::Stop;
use lapin::{Connection, ConnectionProperties};
use sqlx::{PgPool, query, query_as, raw_sql};
use tokio::time::{sleep, timeout};

const PROGRAM: Program = Program {
    name: "outbox",
    about: "Transfers are made, and their events published to RabbitMQ at least once.",
    broker: "amqp://guest:guest@127.0.0.1:5672/%2f",
    needs: "",
};

/// How long RabbitMQ may take to confirm. Short of memory or disk it does not, and the rows that wait
/// for it are locked.
const CONFIRMED: Duration = Duration::from_secs(10);

type Failed = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    match service().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{}: {why}", PROGRAM.name);
            ExitCode::FAILURE
        }
    }
}

async fn service() -> Result<(), Failed> {
    let options = Options::from_args(&PROGRAM)?;
    let pool = PgPool::connect(&options.database).await?;
    raw_sql(
        "CREATE TABLE IF NOT EXISTS transfers (id text PRIMARY KEY, account text NOT NULL, cents bigint NOT NULL);
         CREATE TABLE IF NOT EXISTS outbox (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            body text NOT NULL,
            published_at timestamptz
         );
         CREATE INDEX IF NOT EXISTS outbox_unpublished ON outbox (number) WHERE published_at IS NULL",
    )
    .execute(&pool)
    .await?;
    for number in 1..=options.publish {
        transfer(&pool, &TransferCompleted::sample(number)).await?;
    }
    let connection = Connection::connect(&options.broker, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    rabbit::declare(&channel, &options.name).await?;
    let mut stop = Stop::listen()?;
    println!("publishing to `{}`; Ctrl-C stops", options.name);
    let mut published = 0;
    while !stop.is_asked() {
        // What is cut off is not noted, and published again.
        let relay = relay(&pool, &channel, &options.name, published);
        let events = stop.within_grace(relay).await.unwrap_or(Ok(0))?;
        published += events;
        if events > 0 {
            println!("published {events}");
            continue;
        }
        tokio::select! {
            () = stop.asked() => {}
            () = sleep(Duration::from_millis(200)) => {}
        }
    }
    let closed = connection.close(200, "stopped".into());
    stop.within_grace(closed).await.unwrap_or(Ok(()))?;
    println!("published={published}");
    Ok(())
}

/// The money moves and the event is noted, or neither. A transfer that was made before is left.
async fn transfer(pool: &PgPool, event: &TransferCompleted) -> Result<(), Failed> {
    let body = serde_json::to_string(event)?;
    let mut tx = pool.begin().await?;
    let made = query("INSERT INTO transfers VALUES ($1, $2, $3) ON CONFLICT DO NOTHING")
        .bind(&event.id)
        .bind(&event.account)
        .bind(event.cents)
        .execute(&mut *tx)
        .await?;
    if made.rows_affected() == 1 {
        query("INSERT INTO outbox (body) VALUES ($1)")
            .bind(&body)
            .execute(&mut *tx)
            .await?;
    }
    Ok(tx.commit().await?)
}

/// Publishes what is next, and notes it. Several relays share the outbox.
async fn relay(
    pool: &PgPool,
    channel: &lapin::Channel,
    name: &str,
    published: usize,
) -> Result<usize, Failed> {
    let mut tx = pool.begin().await?;
    let next: Vec<(i64, String)> = query_as(
        "SELECT number, body FROM outbox WHERE published_at IS NULL \
         ORDER BY number LIMIT 10 FOR UPDATE SKIP LOCKED",
    )
    .fetch_all(&mut *tx)
    .await?;
    if next.is_empty() {
        return Ok(0);
    }
    let (numbers, bodies): (Vec<i64>, Vec<String>) = next.into_iter().unzip();
    let bodies: Vec<Vec<u8>> = bodies.into_iter().map(String::into_bytes).collect();
    let publish = timeout(CONFIRMED, rabbit::publish(channel, name, &bodies)).await;
    publish.map_err(|_| "RabbitMQ does not confirm")??;
    if crashes_within(published, numbers.len()) {
        std::process::abort(); // published, and not noted
    }
    query("UPDATE outbox SET published_at = now() WHERE number = ANY($1)")
        .bind(&numbers)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(numbers.len())
}

/// For the show.
fn crashes_within(published: usize, next: usize) -> bool {
    let after = env::var("CRASH_AFTER")
        .ok()
        .and_then(|after| after.parse().ok());
    after.is_some_and(|after| (published + 1..=published + next).contains(&after))
}
