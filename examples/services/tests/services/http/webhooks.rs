//! `github_webhooks`.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::{Client, RequestBuilder};
use serde::Deserialize;
use serde_json::Value;
use sha2::Sha256;

use crate::database::{comes_back, goes_down, hold, until_one_waits};
use crate::http::server::{Server, refuses_to_start};
use crate::running::Fresh;

const PROGRAM: &str = env!("CARGO_BIN_EXE_github_webhooks");
const SECRET: (&str, &str) = ("GITHUB_WEBHOOK_SECRET", "It's a Secret to Everybody");

const ROWS: &str = "SELECT count(*) FROM webhook_events";
const KEYS: &str = "SELECT count(*) FROM processed_messages";

const ID: &str = "72d3162e-cc78-11e3-81ab-4c9367dc0958";
const BODY: &str = r#"{"action":"opened","repository":{"full_name":"octocat/Hello-World"},"sender":{"login":"octocat"}}"#;

fn start(db: &Fresh) -> Server {
    Server::start(PROGRAM, SECRET, db)
}

fn signature(body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.1.as_bytes()).expect("any length is fine");
    mac.update(body.as_bytes());
    mac.finalize()
        .into_bytes()
        .iter()
        .fold("sha256=".to_owned(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a string takes it");
            text
        })
}

fn unsigned(server: &Server, id: &str, event: &str) -> RequestBuilder {
    Client::new()
        .post(format!("{}/webhooks", server.url))
        .header("Content-Type", "application/json")
        .header("X-GitHub-Delivery", id)
        .header("X-GitHub-Event", event)
}

fn signed(request: RequestBuilder, body: &str) -> RequestBuilder {
    request
        .header("X-Hub-Signature-256", signature(body))
        .body(body.to_owned())
}

fn delivery(server: &Server, id: &str, event: &str) -> RequestBuilder {
    signed(unsigned(server, id, event), BODY)
}

async fn send(request: RequestBuilder) -> u16 {
    let response = request.send().await.expect("it is answered");
    response.status().as_u16()
}

#[test]
fn the_tests_sign_as_github_does() {
    assert_eq!(
        signature("Hello, World!"),
        "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    );
}

async fn a_redelivery_is_noted_once(db: &Fresh) {
    let server = start(db);
    for _ in 0..3 {
        assert_eq!(send(delivery(&server, ID, "issues")).await, 200);
    }
    // The same id in another spelling.
    let upper = ID.to_uppercase();
    assert_eq!(send(delivery(&server, &upper, "issues")).await, 200);
    assert_eq!(db.number(ROWS).await, 1);
    let sql = "SELECT count(*) FROM webhook_events WHERE action = 'opened' \
               AND repository = 'octocat/Hello-World' AND sender = 'octocat'";
    assert_eq!(db.number(sql).await, 1);
}

async fn another_event_with_the_same_id_is_noted_too(db: &Fresh) {
    let server = start(db);
    for event in ["issues", "issue_comment", "issues", "issue_comment"] {
        assert_eq!(send(delivery(&server, ID, event)).await, 200);
    }
    assert_eq!(db.number(ROWS).await, 2);
}

async fn what_github_did_not_sign_is_refused_and_not_stored(db: &Fresh) {
    let server = start(db);
    let with = |signature: String| {
        unsigned(&server, ID, "issues")
            .header("X-Hub-Signature-256", signature)
            .body(BODY)
    };
    let right = signature(BODY);
    let requests = [
        unsigned(&server, ID, "issues").body(BODY),
        with(signature("another body")),
        with(right.replace("sha256=", "sha1=")),
        with(right[..right.len() - 1].to_owned()),
        with(String::new()),
        // The signature comes before all else.
        Client::new().post(format!("{}/webhooks", server.url)),
        unsigned(&server, "no id", "issues").body(BODY),
        unsigned(&server, ID, "issues").body("no JSON"),
    ];
    for (number, request) in requests.into_iter().enumerate() {
        assert_eq!(send(request).await, 401, "{number}");
    }
    assert_eq!(db.number(ROWS).await, 0);
    assert_eq!(db.number(KEYS).await, 0);
}

async fn what_is_no_webhook_is_refused_and_not_stored(db: &Fresh) {
    let server = start(db);
    let bare = || Client::new().post(format!("{}/webhooks", server.url));
    let bad = [
        bare(),
        bare().header("X-GitHub-Event", "issues"),
        bare().header("X-GitHub-Delivery", ID),
        unsigned(&server, "42", "issues"),
        unsigned(&server, "", "issues"),
        unsigned(&server, ID, ""),
        unsigned(&server, ID, "no event"),
    ];
    for (number, request) in bad.into_iter().enumerate() {
        assert_eq!(send(signed(request, BODY)).await, 400, "{number}");
    }
    for body in ["no JSON", "", "payload=%7B%7D"] {
        let request = signed(unsigned(&server, ID, "issues"), body);
        assert_eq!(send(request).await, 422, "{body}");
    }
    let large = " ".repeat(25 * 1024 * 1024 + 1);
    // It may hang up before all of that is sent.
    if let Ok(response) = signed(unsigned(&server, ID, "issues"), &large).send().await {
        assert_eq!(response.status().as_u16(), 413);
    }
    assert_eq!(db.number(ROWS).await, 0);
    assert_eq!(db.number(KEYS).await, 0);
    assert_eq!(send(delivery(&server, ID, "issues")).await, 200);
}

async fn of_twenty_at_once_one_is_noted(db: &Fresh) {
    let server = start(db);
    let deliveries: Vec<_> = (0..20)
        .map(|_| tokio::spawn(send(delivery(&server, ID, "issues"))))
        .collect();
    for delivery in deliveries {
        assert_eq!(delivery.await.expect("it is answered"), 200);
    }
    assert_eq!(db.number(ROWS).await, 1);
    server.terminate();
    let (status, shown) = server.ended();
    assert!(status.success());
    let last = "processed=1 duplicates=19 redelivered=0 rejected=0";
    assert_eq!(shown.last().map(String::as_str), Some(last));
}

async fn while_the_database_is_down_a_redelivery_is_asked_for(db: &Fresh) {
    let server = start(db);
    goes_down(db).await;
    assert_eq!(send(delivery(&server, ID, "issues")).await, 503);
    comes_back(db).await;
    assert_eq!(db.number(KEYS).await, 0);
    for _ in 0..2 {
        assert_eq!(send(delivery(&server, ID, "issues")).await, 200);
    }
    assert_eq!(db.number(ROWS).await, 1);
}

async fn a_crash_in_the_middle_of_a_delivery_notes_it_once(db: &Fresh) {
    let server = start(db);
    let lock = hold(db, "LOCK TABLE webhook_events IN SHARE MODE").await;
    let cut = tokio::spawn(delivery(&server, ID, "issues").send());
    until_one_waits(db).await;
    server.crash();
    assert!(cut.await.expect("it ends").is_err(), "nobody answers");
    lock.rollback().await.expect("it lets go");
    let server = start(db);
    assert_eq!(send(delivery(&server, ID, "issues")).await, 200);
    assert_eq!(db.number(ROWS).await, 1);
}

/// With the payloads as GitHub publishes them, of which ten come twice.
async fn every_kind_of_event_is_noted(db: &Fresh) {
    #[derive(Deserialize)]
    struct Example {
        delivery: String,
        event: String,
        payload: Value,
    }

    let server = start(db);
    let lines = include_str!("../../../../data/github-webhooks.jsonl").lines();
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let example: Example = serde_json::from_str(line).expect("it is an example");
        let request = unsigned(&server, &example.delivery, &example.event);
        assert_eq!(
            send(signed(request, &example.payload.to_string())).await,
            200
        );
    }
    assert_eq!(db.number(ROWS).await, 58);
    server.terminate();
    let (_, shown) = server.ended();
    let last = "processed=58 duplicates=10 redelivered=0 rejected=0";
    assert_eq!(shown.last().map(String::as_str), Some(last));
}

on_postgres!(
    a_redelivery_is_noted_once,
    another_event_with_the_same_id_is_noted_too,
    what_github_did_not_sign_is_refused_and_not_stored,
    what_is_no_webhook_is_refused_and_not_stored,
    of_twenty_at_once_one_is_noted,
    while_the_database_is_down_a_redelivery_is_asked_for,
    a_crash_in_the_middle_of_a_delivery_notes_it_once,
    every_kind_of_event_is_noted,
);

#[test]
fn it_does_not_start_without_a_secret() {
    for secret in [None, Some("")] {
        let said = refuses_to_start(PROGRAM, SECRET.0, secret);
        assert!(said.contains(SECRET.0), "{said}");
    }
}
