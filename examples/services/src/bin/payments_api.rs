//! An HTTP API that takes payments, once for each `Idempotency-Key` of a caller.
//!
//! It does what draft-ietf-httpapi-idempotency-key-header-06 asks of a server; § is a section of it.
//!
//! - Ours: `pay`, in one transaction with the key, a fingerprint of the request, and the response. A
//!   retry gets that response again, to the byte. The key is the caller's own: with the same key
//!   another caller makes another payment, and is never answered with this one's response.
//! - The client's: it makes one key for one payment, and sends the same request again until it is
//!   answered. That is safe after a lost answer, a 409 and a 503.
//! - Answered: after the commit, never before. A refusal that is to stick (402) is stored like a
//!   payment; of a failure that may pass (503), and of a request that is none (4xx), nothing is.
//! - A key counts for 24 hours, as the answers say. After that it makes another payment.
//!
//! ```text
//! PAYMENTS_TOKENS=acme=first-token,globex=second-token \
//!     cargo run -p idempotent-services --features http --bin payments_api
//! curl -i http://127.0.0.1:8080/payments -H 'Authorization: Bearer first-token' \
//!     -H 'Idempotency-Key: "8e03978e-40d5-43e8-bc93-6894a57f9324"' --json '{"to":"alice","cents":1200}'
//! ```

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use idempotent_runtime::{
    Attempts, Disposition, Error, KeyPart, Replay, disposition, idempotent, transact,
};
use idempotent_services::http::{self, Options, Program};
use idempotent_services::idempotency_key::{IdempotencyKey, Refused};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use sqlx::{PgPool, Postgres, Transaction, query, query_as, query_scalar, raw_sql};

const PROGRAM: Program = Program {
    name: "payments_api",
    about: "A payment is made once for each Idempotency-Key of a caller, however often it is sent\n\
            within 24 hours.",
    secret: "PAYMENTS_TOKENS",
    secret_is: "who may call, as in acme=first-token,globex=second-token",
};

/// No payment is larger.
const LARGEST: usize = 16 * 1024;

/// What each tenant begins with, for the show.
const OPENING_CENTS: i64 = 100_000;

/// "With body containing a link pointing to relevant documentation" (§2.7).
const DOCUMENTATION: &str = "https://developer.example.com/payments";

type Failed = Box<dyn std::error::Error + Send + Sync>;

struct Service {
    pool: PgPool,
    tenants: Tenants,
    is_quiet: bool,
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
    let tenants = Tenants::parse(&PROGRAM.secret()?)?;
    let pool = http::database(&options.database).await?;
    create_tables(&pool, &tenants).await?;
    let service = Service {
        pool: pool.clone(),
        tenants,
        is_quiet: options.is_quiet,
    };
    let router = Router::new()
        .route("/payments", post(create_payment))
        .fallback(async || no_such(StatusCode::NOT_FOUND))
        .method_not_allowed_fallback(async || no_such(StatusCode::METHOD_NOT_ALLOWED))
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(Arc::new(service));
    http::serve(&options.listen, router, &pool).await?;
    println!("stopped");
    Ok(())
}

async fn create_tables(pool: &PgPool, tenants: &Tenants) -> sqlx::Result<()> {
    raw_sql(
        "CREATE TABLE IF NOT EXISTS accounts (
            tenant text PRIMARY KEY,
            cents bigint NOT NULL CHECK (cents >= 0)
        );
        CREATE TABLE IF NOT EXISTS payments (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            tenant text NOT NULL REFERENCES accounts,
            payee text NOT NULL,
            cents bigint NOT NULL,
            paid_at timestamptz NOT NULL DEFAULT clock_timestamp()
        )",
    )
    .execute(pool)
    .await?;
    for Tenant(tenant) in tenants.0.values() {
        query("INSERT INTO accounts (tenant, cents) VALUES ($1, $2) ON CONFLICT DO NOTHING")
            .bind(tenant)
            .bind(OPENING_CENTS)
            .execute(pool)
            .await?;
    }
    Ok(())
}

// The callers.

#[derive(Clone, Debug, KeyPart)]
struct Tenant(String);

/// Whose a token is. Looked up by its hash, a token is not told by the time that takes.
struct Tenants(HashMap<[u8; 32], Tenant>);

impl Tenants {
    fn parse(text: &str) -> Result<Self, String> {
        let mut tenants = HashMap::new();
        for entry in text.split(',') {
            let (tenant, token) = match entry.trim().split_once('=') {
                Some((tenant, token)) if !tenant.is_empty() && !token.is_empty() => (tenant, token),
                _ => return Err(format!("set {}: {}", PROGRAM.secret, PROGRAM.secret_is)),
            };
            let known = tenants.insert(sha256(token), Tenant(tenant.to_owned()));
            if let Some(Tenant(other)) = known {
                return Err(format!("`{other}` and `{tenant}` have one token"));
            }
        }
        Ok(Self(tenants))
    }

    fn caller(&self, headers: &HeaderMap) -> Option<&Tenant> {
        let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        self.0.get(&sha256(token.trim_start()))
    }
}

fn sha256(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

// The request.

/// An unknown field is refused: it could mean something that the fingerprint does not cover.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Payment {
    to: String,
    cents: i64,
}

impl Payment {
    fn of(body: Result<Json<Self>, JsonRejection>) -> Result<Self, Problem> {
        let Json(payment) = body.map_err(|rejection| {
            let status = match rejection.status() {
                // It means a reused key here.
                StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
                status => status,
            };
            Problem::new(
                status,
                "payment",
                "This is no payment",
                rejection.body_text(),
            )
        })?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_name = matches!(payment.to.len(), 1..=64) && payment.to.bytes().all(is_plain);
        if is_name && payment.cents > 0 {
            return Ok(payment);
        }
        Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "payment",
            "This is no payment",
            "`to` is 1 to 64 letters, digits and `-_.`, and `cents` at least 1",
        ))
    }
}

// The handler.

/// Pays, or refuses for want of money: either is the response for as long as the key is kept.
///
/// - The key: "a composite key MAY be implemented by combining the idempotency key sent by the client
///   with other client specific attributes known only to the resource" (Security
///   Considerations). Without the tenant, one could guess another's keys and read the responses.
/// - The fingerprint: "field value match for each field in the request payload" (§2.4).
/// - `busy = "fail"`: a concurrent request is not to wait; "the resource SHOULD respond with a resource
///   conflict error" (§2.6).
/// - `retain`: "the resource MAY require time based idempotency keys to be able to purge or delete a
///   key upon its expiry. The resource SHOULD define such expiration policy and publish it" (§2.3): the
///   answers do.
#[idempotent(
    key(tenant, idempotency_key),
    fingerprint(payment.to, payment.cents),
    scope = "payments.create",
    replay,
    busy = "fail",
    retain = "24 hours"
)]
async fn pay(
    tx: &mut Transaction<'_, Postgres>,
    tenant: &Tenant,
    idempotency_key: &IdempotencyKey,
    payment: &Payment,
) -> Result<Answer, Error> {
    let balance: Option<i64> = query_scalar(
        "UPDATE accounts SET cents = cents - $2 WHERE tenant = $1 AND cents >= $2 RETURNING cents",
    )
    .bind(&tenant.0)
    .bind(payment.cents)
    .fetch_optional(&mut **tx)
    .await?;
    let Some(balance) = balance else {
        return Ok(Problem::new(
            StatusCode::PAYMENT_REQUIRED,
            "insufficient-funds",
            "Insufficient funds",
            format!("{} cents are more than there are", payment.cents),
        )
        .answer());
    };
    let (id, paid_at): (i64, String) = query_as(
        "INSERT INTO payments (tenant, payee, cents) VALUES ($1, $2, $3) \
         RETURNING id, to_json(paid_at) #>> '{}'",
    )
    .bind(&tenant.0)
    .bind(&payment.to)
    .bind(payment.cents)
    .fetch_one(&mut **tx)
    .await?;
    let body = json!({
        "id": id,
        "to": payment.to,
        "cents": payment.cents,
        "paid_at": paid_at,
        "balance": balance,
    });
    Ok(Answer {
        status: StatusCode::CREATED.as_u16(),
        body: body.to_string(),
    })
}

// The server.

async fn create_payment(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: Result<Json<Payment>, JsonRejection>,
) -> Response {
    let mut is_replayed = false;
    let response = match service.pay(&headers, body).await {
        Ok(answer) => {
            is_replayed = answer.is_replayed();
            let mut response = answer.into_inner().into_response();
            if is_replayed {
                let headers = response.headers_mut();
                headers.insert("idempotent-replayed", HeaderValue::from_static("true"));
            }
            response
        }
        Err(problem) => problem.into_response(),
    };
    if !service.is_quiet {
        let word = if is_replayed { "replayed" } else { "" };
        let key = headers.get(IdempotencyKey::HEADER);
        let key = key.and_then(|key| key.to_str().ok()).unwrap_or("-");
        println!("{} {word:<8} {key}", response.status().as_u16());
    }
    response
}

impl Service {
    /// If the client hangs up, this is dropped, and what is not committed is rolled back: its retry
    /// pays.
    async fn pay(
        &self,
        headers: &HeaderMap,
        body: Result<Json<Payment>, JsonRejection>,
    ) -> Result<Replay<Answer>, Problem> {
        let tenant = self.tenants.caller(headers).ok_or_else(unauthorized)?;
        let key = IdempotencyKey::of(headers)?;
        let payment = Payment::of(body)?;
        // One attempt: more would wait for the request that is under way, where the client is to get
        // its 409. For all else that may pass, the client's next attempt is as good as ours.
        let attempts = Attempts::on(&self.pool)
            .attempts(1)
            .lock_timeout(Duration::from_secs(5));
        Ok(transact!(attempts, tx => pay(tx, tenant, &key, &payment)).await?)
    }
}

/// A response as it is stored. "The resource SHOULD respond with the result of the previously completed
/// operation, success or an error" (§2.6): as text it comes back to the byte, also from a release that
/// writes its bodies in another way.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Answer {
    status: u16,
    body: String,
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let media_type = if status.is_success() {
            "application/json"
        } else {
            "application/problem+json"
        };
        (status, [(CONTENT_TYPE, media_type)], self.body).into_response()
    }
}

/// An error in the form of RFC 9457.
#[derive(Debug)]
struct Problem {
    status: StatusCode,
    anchor: &'static str,
    title: &'static str,
    detail: String,
}

impl Problem {
    fn new(
        status: StatusCode,
        anchor: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            status,
            anchor,
            title,
            detail: detail.into(),
        }
    }

    fn answer(&self) -> Answer {
        let body = json!({
            "type": format!("{DOCUMENTATION}#{}", self.anchor),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        Answer {
            status: self.status.as_u16(),
            body: body.to_string(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.answer().into_response();
        let header = match self.status {
            StatusCode::UNAUTHORIZED => Some((WWW_AUTHENTICATE, "Bearer")),
            StatusCode::CONFLICT | StatusCode::SERVICE_UNAVAILABLE => Some((RETRY_AFTER, "1")),
            _ => None,
        };
        if let Some((name, value)) = header {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(name, value);
        }
        response
    }
}

fn no_such(status: StatusCode) -> Problem {
    let detail = "payments are made with `POST /payments`";
    Problem::new(status, "requests", "There is nothing here", detail)
}

fn unauthorized() -> Problem {
    Problem::new(
        StatusCode::UNAUTHORIZED,
        "authentication",
        "Who is this?",
        "send `Authorization: Bearer` and a token",
    )
}

/// "If the Idempotency-Key request header is missing […], the resource SHOULD reply with an HTTP 400
/// status code" (§2.7).
impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let title = match refused {
            Refused::Missing => "Idempotency-Key is missing",
            Refused::Malformed(_) => "Idempotency-Key is no key",
        };
        Self::new(
            StatusCode::BAD_REQUEST,
            "idempotency-key",
            title,
            format!("{refused}; a key counts for 24 hours"),
        )
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let (status, anchor, title, detail) = if error.is_in_flight() {
            // "If the request is retried, while the original request is still being processed, the
            // resource SHOULD reply with an HTTP 409 status code" (§2.7).
            (
                StatusCode::CONFLICT,
                "in-flight",
                "A request is outstanding for this Idempotency-Key",
                "send it again later, as it is: its key counts for 24 hours",
            )
        } else if error.is_key_reused() {
            // "If there is an attempt to reuse an idempotency key with a different request payload,
            // the resource SHOULD reply with a HTTP 422 status code" (§2.7).
            (
                StatusCode::UNPROCESSABLE_ENTITY,
                "key-reused",
                "Idempotency-Key is already used",
                "another payment was sent with this key within 24 hours: make a key for each",
            )
        } else if disposition(&error) == Disposition::Reject {
            eprintln!("{}: {error}", PROGRAM.name);
            (
                StatusCode::UNPROCESSABLE_ENTITY,
                "unanswerable",
                "The response cannot be given again",
                "the request was answered before, and is not run again: ask us what became of it",
            )
        } else {
            // What is wrong is ours to read, not the caller's.
            eprintln!("{}: {error}", PROGRAM.name);
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "Nothing is known to be paid",
                "send it again later, as it is: it pays once",
            )
        };
        Self::new(status, anchor, title, detail)
    }
}
