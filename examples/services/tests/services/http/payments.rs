//! `payments_api`.

use reqwest::header::HeaderMap;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::database::{comes_back, goes_down, hold, run, until_one_waits};
use crate::http::server::{Server, refuses_to_start};
use crate::running::{Fresh, until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_payments_api");
const TOKENS: (&str, &str) = ("PAYMENTS_TOKENS", "acme=first-token,globex=second-token");

const PAYMENTS: &str = "SELECT count(*) FROM payments";
const KEYS: &str = "SELECT count(*) FROM processed_messages";
/// What acme has paid, by its account and by its payments: never two sums.
const PAID: &str = "SELECT 100000 - cents FROM accounts WHERE tenant = 'acme'";
const SUM: &str = "SELECT coalesce(sum(cents), 0)::bigint FROM payments WHERE tenant = 'acme'";

fn start(db: &Fresh) -> Server {
    Server::start(PROGRAM, TOKENS, db)
}

/// A request that lacks nothing.
fn request(server: &Server, key: &str) -> RequestBuilder {
    bare(server)
        .bearer_auth("first-token")
        .header("Idempotency-Key", key)
        .json(&json!({ "to": "alice", "cents": 1200 }))
}

fn bare(server: &Server) -> RequestBuilder {
    Client::new().post(format!("{}/payments", server.url))
}

#[derive(Debug, Eq, PartialEq)]
struct Answer {
    status: u16,
    is_replayed: bool,
    media_type: String,
    body: String,
}

async fn send(request: RequestBuilder) -> Answer {
    let response = request.send().await.expect("it is answered");
    let text = |headers: &HeaderMap, name| {
        let value = headers.get(name)?.to_str().expect("it is a text");
        Some(value.to_owned())
    };
    let headers = response.headers().clone();
    let status = response.status().as_u16();
    if matches!(status, 409 | 503) {
        assert_eq!(text(&headers, "retry-after").as_deref(), Some("1"));
    }
    if status == 401 {
        assert_eq!(
            text(&headers, "www-authenticate").as_deref(),
            Some("Bearer")
        );
    }
    if status == 405 {
        assert_eq!(text(&headers, "allow").as_deref(), Some("POST"));
    }
    let answer = Answer {
        status,
        is_replayed: text(&headers, "idempotent-replayed").as_deref() == Some("true"),
        media_type: text(&headers, "content-type").expect("there is a body"),
        body: response.text().await.expect("it is whole"),
    };
    if status >= 400 {
        assert_eq!(answer.media_type, "application/problem+json");
        let problem: Value = serde_json::from_str(&answer.body).expect("it is JSON");
        assert_eq!(problem["status"], status);
        for member in ["type", "title", "detail"] {
            assert!(problem[member].is_string(), "{problem}");
        }
    }
    answer
}

/// The same answer, given again.
fn again(answer: &Answer) -> Answer {
    Answer {
        is_replayed: true,
        media_type: answer.media_type.clone(),
        body: answer.body.clone(),
        ..*answer
    }
}

async fn a_retry_gets_the_first_response_to_the_byte(db: &Fresh) {
    let server = start(db);
    let first = send(request(&server, "\"one\"")).await;
    assert_eq!((first.status, first.is_replayed), (201, false));
    assert_eq!(first.media_type, "application/json");

    // The balance is another by then, and so is the time.
    assert_eq!(send(request(&server, "\"two\"")).await.status, 201);
    assert_eq!(send(request(&server, "\"one\"")).await, again(&first));
    assert_eq!(send(request(&server, "one")).await, again(&first));

    drop(server);
    let server = start(db);
    assert_eq!(send(request(&server, "\"one\"")).await, again(&first));
    assert_eq!(db.number(PAYMENTS).await, 2);
    assert_eq!(db.number(PAID).await, 2400);
}

async fn what_is_no_request_is_refused_and_not_stored(db: &Fresh) {
    let server = start(db);
    let body = json!({ "to": "alice", "cents": 1200 });
    let with_body = |request: RequestBuilder, body: &Value| request.json(body);
    let of_acme = |server: &Server| bare(server).bearer_auth("first-token");
    let keyed = |server: &Server| of_acme(server).header("Idempotency-Key", "one");

    let unknown = [
        with_body(bare(&server), &body),
        with_body(bare(&server).header("Idempotency-Key", "one"), &body),
        with_body(bare(&server).bearer_auth("third-token"), &body),
        with_body(bare(&server).basic_auth("acme", Some("first-token")), &body),
        with_body(bare(&server).bearer_auth(""), &body),
        bare(&server).body("no JSON"),
    ];
    for (number, request) in unknown.into_iter().enumerate() {
        assert_eq!(send(request).await.status, 401, "{number}");
    }

    let long = "k".repeat(256);
    for key in ["", "\"\"", "\"one", "one, two", "\"one\";v=1", &long] {
        let request = with_body(of_acme(&server).header("Idempotency-Key", key), &body);
        assert_eq!(send(request).await.status, 400, "{key}");
    }
    let missing = send(with_body(of_acme(&server), &body)).await;
    assert_eq!(missing.status, 400);
    assert!(missing.body.contains("Idempotency-Key is missing"));
    assert!(missing.body.contains("24 hours"), "the expiry is published");
    let two = with_body(keyed(&server).header("Idempotency-Key", "two"), &body);
    assert_eq!(send(two).await.status, 400);

    for payment in [
        json!({ "to": "alice" }),
        json!({ "to": "alice", "cents": "1200" }),
        json!({ "to": "alice", "cents": 0 }),
        json!({ "to": "alice", "cents": -1200 }),
        json!({ "to": "alice", "cents": 1200, "currency": "EUR" }),
        json!({ "to": "", "cents": 1200 }),
        json!({ "to": "a\u{0}", "cents": 1200 }),
        json!(null),
    ] {
        let request = with_body(keyed(&server), &payment);
        assert_eq!(send(request).await.status, 400, "{payment}");
    }
    let json = "application/json";
    let cut = keyed(&server).header("Content-Type", json).body("{");
    assert_eq!(send(cut).await.status, 400);
    let text = keyed(&server).body(body.to_string());
    assert_eq!(send(text).await.status, 415);
    let large = json!({ "to": "a".repeat(16 * 1024), "cents": 1200 });
    assert_eq!(send(with_body(keyed(&server), &large)).await.status, 413);

    let elsewhere = Client::new().post(format!("{}/payment", server.url));
    assert_eq!(send(elsewhere).await.status, 404);
    let read = Client::new().get(format!("{}/payments", server.url));
    assert_eq!(send(read).await.status, 405);

    assert_eq!(db.number(PAYMENTS).await, 0);
    assert_eq!(db.number(KEYS).await, 0);
}

async fn a_key_that_is_reused_for_another_payment_is_refused(db: &Fresh) {
    let server = start(db);
    let first = send(request(&server, "one")).await;
    for other in [
        json!({ "to": "alice", "cents": 1201 }),
        json!({ "to": "bob", "cents": 1200 }),
    ] {
        let answer = send(request(&server, "one").json(&other)).await;
        assert_eq!((answer.status, answer.is_replayed), (422, false));
        assert!(!answer.body.contains("paid_at"), "{}", answer.body);
    }
    // The members in another order are the same payment.
    let turned = request(&server, "one").body(r#"{ "cents": 1200, "to": "alice" }"#);
    assert_eq!(send(turned).await, again(&first));
    assert_eq!(db.number(PAYMENTS).await, 1);
}

async fn nobody_is_answered_with_the_response_of_another(db: &Fresh) {
    let server = start(db);
    let acme = send(request(&server, "one")).await;
    let body = json!({ "to": "alice", "cents": 1200 });
    let of_globex = || {
        bare(&server)
            .bearer_auth("second-token")
            .header("Idempotency-Key", "one")
            .json(&body)
    };
    let globex = send(of_globex()).await;
    assert_eq!((globex.status, globex.is_replayed), (201, false));
    assert_ne!(globex.body, acme.body);
    assert_eq!(send(request(&server, "one")).await, again(&acme));
    assert_eq!(send(of_globex()).await, again(&globex));
    assert_eq!(
        db.number("SELECT count(DISTINCT tenant) FROM payments")
            .await,
        2
    );
    assert_eq!(db.number(PAYMENTS).await, 2);
}

async fn a_refusal_sticks(db: &Fresh) {
    let server = start(db);
    let body = json!({ "to": "alice", "cents": 100_001 });
    let refused = send(request(&server, "one").json(&body)).await;
    assert_eq!((refused.status, refused.is_replayed), (402, false));
    run(db, "UPDATE accounts SET cents = 200000").await;
    assert_eq!(
        send(request(&server, "one").json(&body)).await,
        again(&refused)
    );
    assert_eq!(db.number(PAYMENTS).await, 0);
    assert_eq!(send(request(&server, "two").json(&body)).await.status, 201);
}

const LOCK: &str = "SELECT FROM accounts WHERE tenant = 'acme' FOR UPDATE";

async fn a_request_in_flight_is_a_conflict(db: &Fresh) {
    let server = start(db);
    let lock = hold(db, LOCK).await;
    let first = tokio::spawn(send(request(&server, "one")));
    until_one_waits(db).await;
    // The first cannot end before the lock does: they do not wait for it. Also with another payload:
    // what the first one is will be known when it has ended.
    let other = json!({ "to": "bob", "cents": 1 });
    let others = [
        request(&server, "one"),
        request(&server, "one"),
        request(&server, "one").json(&other),
    ];
    let others = others.map(|request| tokio::spawn(send(request)));
    for other in others {
        let answer = other.await.expect("it is answered");
        assert_eq!(answer.status, 409);
        assert!(answer.body.contains("24 hours"), "{}", answer.body);
    }
    lock.rollback().await.expect("it lets go");
    let first = first.await.expect("it is answered");
    assert_eq!((first.status, first.is_replayed), (201, false));
    assert_eq!(send(request(&server, "one")).await, again(&first));
    assert_eq!(db.number(PAYMENTS).await, 1);
}

async fn of_twenty_at_once_one_pays(db: &Fresh) {
    let server = start(db);
    for round in 0..10 {
        let key = format!("\"round {round}\"");
        let requests: Vec<_> = (0..20)
            .map(|_| tokio::spawn(send(request(&server, &key))))
            .collect();
        let mut answers = Vec::new();
        for request in requests {
            answers.push(request.await.expect("it is answered"));
        }
        let is_first = |answer: &&Answer| answer.status == 201 && !answer.is_replayed;
        let first: Vec<_> = answers.iter().filter(is_first).collect();
        assert_eq!(first.len(), 1, "{answers:?}");
        for answer in &answers {
            let is_fine = answer.status == 409 || answer == first[0] || *answer == again(first[0]);
            assert!(is_fine, "{answer:?}");
        }
    }
    assert_eq!(db.number(PAYMENTS).await, 10);
    assert_eq!(db.number(PAID).await, 12_000);
}

/// Sends until it is not told to wait.
async fn insist(server: &Server, key: &str) -> Answer {
    let mut answer = send(request(server, key)).await;
    until("it is not told to wait", async || {
        if matches!(answer.status, 409 | 503) {
            answer = send(request(server, key)).await;
        }
        !matches!(answer.status, 409 | 503)
    })
    .await;
    answer
}

async fn a_crash_in_the_middle_of_a_request_pays_once(db: &Fresh) {
    let server = start(db);
    let lock = hold(db, LOCK).await;
    let cut = tokio::spawn(request(&server, "one").send());
    until_one_waits(db).await;
    server.crash();
    assert!(cut.await.expect("it ends").is_err(), "nobody answers");

    let server = start(db);
    lock.rollback().await.expect("it lets go");
    let answer = insist(&server, "one").await;
    assert_eq!((answer.status, answer.is_replayed), (201, false));
    assert_eq!(db.number(PAYMENTS).await, 1);
    assert_eq!(db.number(PAID).await, 1200);
}

async fn crashes_under_load_pay_once_each(db: &Fresh) {
    let mut expected = 0;
    for round in 0..3 {
        let server = start(db);
        let keys: Vec<_> = (0..25).map(|number| format!("{round}:{number}")).collect();
        let sent: Vec<_> = keys
            .iter()
            .map(|key| tokio::spawn(request(&server, key).send()))
            .collect();
        // Not before it is in the middle of it.
        until("some are paid", async || {
            db.number(PAYMENTS).await >= expected + 2
        })
        .await;
        server.crash();
        for request in sent {
            let _ = request.await.expect("it ends, one way or the other");
        }
        let server = start(db);
        for key in &keys {
            assert_eq!(insist(&server, key).await.status, 201);
        }
        expected += 25;
        assert_eq!(db.number(PAYMENTS).await, expected);
        assert_eq!(db.number(PAID).await, db.number(SUM).await, "round {round}");
    }
}

async fn while_the_database_is_down_nothing_is_lost(db: &Fresh) {
    let server = start(db);
    assert_eq!(send(request(&server, "one")).await.status, 201);
    goes_down(db).await;
    for key in ["one", "two"] {
        let answer = send(request(&server, key)).await;
        assert_eq!(answer.status, 503);
        assert!(!answer.body.contains("postgres"), "{}", answer.body);
    }
    comes_back(db).await;
    assert!(send(request(&server, "one")).await.is_replayed);
    let two = send(request(&server, "two")).await;
    assert_eq!((two.status, two.is_replayed), (201, false));
    assert_eq!(db.number(PAYMENTS).await, 2);
}

async fn asked_to_stop_it_ends_what_it_began(db: &Fresh) {
    let server = start(db);
    let lock = hold(db, LOCK).await;
    let url = server.url.clone();
    let begun = tokio::spawn(send(request(&server, "one")));
    until_one_waits(db).await;
    server.terminate();
    // It listens no more.
    until("it listens no more", async || {
        Client::new().get(&url).send().await.is_err()
    })
    .await;
    lock.rollback().await.expect("it lets go");
    assert_eq!(begun.await.expect("it is answered").status, 201);
    let (status, shown) = server.ended();
    assert!(status.success());
    let paid = shown.iter().filter(|line| line.starts_with("201 "));
    assert_eq!(paid.count(), 1, "{shown:?}");
    assert_eq!(shown.last().map(String::as_str), Some("stopped"));
    assert_eq!(db.number(PAYMENTS).await, 1);
}

/// With a statement that no time limit of the service ends.
async fn asked_to_stop_it_does_not_wait_for_ever(db: &Fresh) {
    const SLEEPING: &str = "SELECT count(*) FROM pg_stat_activity \
                            WHERE datname = current_database() AND wait_event = 'PgSleep'";

    let server = start(db);
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS \
                'BEGIN PERFORM pg_sleep(600); RETURN NEW; END'; \
                CREATE TRIGGER slow BEFORE INSERT ON payments FOR EACH ROW EXECUTE FUNCTION slow()";
    run(db, slow).await;
    let begun = tokio::spawn(request(&server, "one").send());
    until("it is begun", async || db.number(SLEEPING).await == 1).await;
    server.terminate();
    let (status, shown) = server.ended();
    assert!(status.success());
    assert_eq!(shown, ["stopped"]);
    assert!(begun.await.expect("it ends").is_err(), "it is cut off");
    assert_eq!(db.number(PAYMENTS).await, 0);
}

on_postgres!(
    a_retry_gets_the_first_response_to_the_byte,
    what_is_no_request_is_refused_and_not_stored,
    a_key_that_is_reused_for_another_payment_is_refused,
    nobody_is_answered_with_the_response_of_another,
    a_refusal_sticks,
    a_request_in_flight_is_a_conflict,
    of_twenty_at_once_one_pays,
    a_crash_in_the_middle_of_a_request_pays_once,
    crashes_under_load_pay_once_each,
    while_the_database_is_down_nothing_is_lost,
    asked_to_stop_it_ends_what_it_began,
    asked_to_stop_it_does_not_wait_for_ever,
);

#[test]
fn it_does_not_start_without_tokens() {
    for tokens in [None, Some(""), Some("acme"), Some("acme="), Some("a=t,b=t")] {
        let said = refuses_to_start(PROGRAM, TOKENS.0, tokens);
        assert!(said.contains("token"), "{said}");
    }
}
