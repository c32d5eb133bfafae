//! A program whose handlers share scopes.

#![forbid(unsafe_code)]
#![allow(dead_code, reason = "the handlers are listed, not called")]

use std::fs;
use std::path::Path;

use idempotent_runtime::handlers::{check_lock, check_scopes};
use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(id), scope = "notify")]
async fn email(_tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<i64> {
    Ok(id)
}

#[idempotent(key(id), scope = "notify")]
async fn push(_tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<i64> {
    Ok(id)
}

struct Service;

impl Service {
    #[idempotent(key(order), scope = "notify")]
    async fn fax(_tx: &mut Transaction<'_, Sqlite>, order: i64) -> sqlx::Result<i64> {
        Ok(order)
    }
}

#[idempotent(key(id), scope = "receipts.store", was("receipts"))]
async fn store(_tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<i64> {
    Ok(id)
}

#[idempotent(key(id), scope = "receipts.send", was("receipts"))]
async fn send(_tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<i64> {
    Ok(id)
}

/// Its keys are elsewhere.
#[idempotent(key(id), scope = "notify", table = "inbox.seen")]
async fn sms(_tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<i64> {
    Ok(id)
}

#[test]
fn handlers_that_share_a_scope_are_all_named() {
    let error = check_scopes().unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    let [
        fact,
        "",
        shared,
        fax,
        email,
        push,
        help,
        "",
        earlier,
        send,
        store,
        keep,
    ] = lines[..]
    else {
        panic!("{error}");
    };
    assert_eq!(fact, "some handlers share a scope");
    assert_eq!(
        shared,
        "`notify` is the scope of 3 handlers, which swallow each other's messages"
    );
    assert_eq!(
        earlier,
        "`receipts` is the scope of 2 handlers, which swallow each other's messages"
    );
    assert_eq!(
        keep,
        "help: keep `was` on the one handler that has its messages now"
    );
    for line in [send, store] {
        assert!(line.ends_with(", by `was`"), "{line}");
    }
    for (line, function) in [
        (fax, "Service::fax"),
        (email, "email"),
        (push, "push"),
        (send, "send"),
        (store, "store"),
    ] {
        let expected = format!("    shared_scopes::{function}, tests/tests/shared_scopes.rs:");
        assert!(line.starts_with(&expected), "{line}");
    }
    assert_eq!(help, "help: give all but one another scope");
}

#[test]
fn the_lock_file_does_not_cure_that() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shared_scopes.lock");
    fs::write(&path, "notify\tid\nnotify\torder\nnotify\tid\tinbox.seen\nreceipts.send\tid\nreceipts.store\tid\n").unwrap();
    let error = check_lock(&path).unwrap_err().to_string();
    assert!(
        error.contains("`notify` is the scope of 3 handlers"),
        "{error}"
    );
    assert!(
        !error.contains("is new") && !error.contains("add `was"),
        "{error}"
    );
    fs::remove_file(&path).unwrap();
}
