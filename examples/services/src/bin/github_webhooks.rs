//! A receiver of GitHub's webhooks. It notes who did what where, once per delivery and event.
//!
//! - Ours: `note`, in one transaction with the key of the delivery. A delivery that comes again is a
//!   duplicate, and is answered like the first.
//! - GitHub's: it signs each delivery, waits ten seconds for the answer, and does not send again by
//!   itself. Somebody presses "Redeliver" or calls the REST API, for three days, and the delivery
//!   comes with the id that it had.
//! - Answered with 2xx: after the commit, never before. 503 asks for a redelivery; 4xx says that
//!   none will help.
//!
//! ```text
//! GITHUB_WEBHOOK_SECRET="It's a Secret to Everybody" \
//!     cargo run -p idempotent-services --features http --bin github_webhooks
//! ```

use std::io;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use idempotent_runtime::{Attempts, Outcome, Verdict, idempotent, transact};
use idempotent_services::http::{self, Options, Program};
use idempotent_services::notify::read;
use idempotent_services::report::{Answer, Report};
use idempotent_services::signature::Secret;
use serde_json::Value;
use sqlx::{PgPool, Postgres, Transaction, query, raw_sql};
use tokio::time::timeout;
use uuid::Uuid;

const PROGRAM: Program = Program {
    name: "github_webhooks",
    about: "Webhooks are noted once per delivery and event, however often GitHub delivers.",
    secret: "GITHUB_WEBHOOK_SECRET",
    secret_is: "the secret that the webhook was configured with",
};

/// GitHub waits for ten seconds.
const ANSWER: Duration = Duration::from_secs(9);

/// GitHub sends nothing larger.
const LARGEST: usize = 25 * 1024 * 1024;

type Failed = Box<dyn std::error::Error + Send + Sync>;

struct Service {
    pool: PgPool,
    secret: Secret,
    report: Mutex<Report>,
}

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
    let secret = Secret::new(&PROGRAM.secret()?).ok_or("the secret is empty")?;
    let pool = http::database(&options.database).await?;
    create_table(&pool).await?;
    let service = Arc::new(Service {
        pool: pool.clone(),
        secret,
        report: Mutex::new(Report::new(options.is_quiet)),
    });
    let router = Router::new()
        .route("/webhooks", post(receive))
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(service.clone());
    http::serve(&options.listen, router, &pool).await?;
    service.report().finish();
    Ok(())
}

/// The unique key has the grain of the handler's, as a second line of defence.
async fn create_table(pool: &PgPool) -> sqlx::Result<()> {
    raw_sql(
        "CREATE TABLE IF NOT EXISTS webhook_events (
            delivery uuid NOT NULL,
            event text NOT NULL,
            action text,
            repository text,
            sender text,
            UNIQUE (delivery, event)
        )",
    )
    .execute(pool)
    .await?;
    Ok(())
}

// The delivery.

struct Delivery {
    /// The header `X-GitHub-Delivery`. As a `Uuid`, two spellings of one id are one key.
    id: Uuid,
    /// The header `X-GitHub-Event`.
    event: String,
}

impl Delivery {
    fn of(headers: &HeaderMap) -> Result<Self, &'static str> {
        let text = |name| headers.get(name)?.to_str().ok();
        let id = text("x-github-delivery").and_then(|id| Uuid::try_parse(id).ok());
        let event = text("x-github-event").filter(|event| is_event(event));
        Ok(Self {
            id: id.ok_or("`X-GitHub-Delivery` is no UUID\n")?,
            event: event.ok_or("`X-GitHub-Event` is no event\n")?.to_owned(),
        })
    }
}

/// GitHub adds events: what it may call one, not which there are.
fn is_event(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    matches!(name.len(), 1..=100) && name.bytes().all(is_plain)
}

// The handler.

/// Notes a webhook. The event is in the key because the delivery's id need not tell events apart;
/// the payload is not, because the id stands for it.
#[idempotent(
    key(delivery.id, delivery.event),
    skip(payload),
    scope = "github",
    retain = "7 days",
    redelivery = "3 days"
)]
async fn note(
    tx: &mut Transaction<'_, Postgres>,
    delivery: &Delivery,
    payload: &Value,
) -> sqlx::Result<()> {
    // Some events belong to an organization or an app: they have no repository.
    let text = |pointer| payload.pointer(pointer).and_then(Value::as_str);
    query(
        "INSERT INTO webhook_events (delivery, event, action, repository, sender) \
         VALUES ($1::uuid, $2, $3, $4, $5)",
    )
    .bind(delivery.id.to_string())
    .bind(&delivery.event)
    .bind(text("/action"))
    .bind(text("/repository/full_name"))
    .bind(text("/sender/login"))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

// The receiver.

/// The signature comes first: nothing else is read of what GitHub did not send.
async fn receive(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, &'static str) {
    let signature = headers.get("x-hub-signature-256");
    if !signature.is_some_and(|signature| service.secret.has_signed(&body, signature.as_bytes())) {
        return (StatusCode::UNAUTHORIZED, "GitHub did not sign this\n");
    }
    let delivery = match Delivery::of(&headers) {
        Ok(delivery) => delivery,
        Err(why) => return (StatusCode::BAD_REQUEST, why),
    };
    let result = service.handle(&delivery, &body).await;
    let name = format!("{} {}", delivery.id, delivery.event);
    match service.report().told(&name, &result) {
        Answer::Acknowledge => (StatusCode::OK, "noted\n"),
        Answer::Redeliver => (StatusCode::SERVICE_UNAVAILABLE, "redeliver it later\n"),
        Answer::Reject => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "this can never be noted: the content type of the webhook must be `application/json`\n",
        ),
    }
}

impl Service {
    /// If GitHub hangs up, or would do so soon, this is dropped, and what is not committed is rolled
    /// back.
    async fn handle(&self, delivery: &Delivery, body: &[u8]) -> sqlx::Result<Verdict> {
        let payload = read(body)?;
        let attempts = Attempts::on(&self.pool)
            .attempts(3)
            .lock_timeout(Duration::from_secs(2));
        let noted = timeout(
            ANSWER,
            transact!(attempts, tx => note(tx, delivery, &payload)),
        )
        .await;
        match noted.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?? {
            Outcome::Processed(()) => Ok(Verdict::Processed),
            Outcome::Duplicate => Ok(Verdict::Duplicate),
        }
    }

    fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
