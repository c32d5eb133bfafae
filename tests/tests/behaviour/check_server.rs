//! The program that says whether a server can be used.

use std::process::{Command, Output};

fn check(url: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_check-server"))
        .arg(url)
        .output()
        .unwrap()
}

#[test]
#[cfg_attr(not(has_postgres), ignore = "needs Postgres: run `cargo xtask test`")]
fn a_postgres_that_lets_us_passes() {
    let output = check(&std::env::var("IDEMPOTENT_POSTGRES_URL").unwrap());
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
#[cfg_attr(not(has_mariadb), ignore = "needs MariaDB: run `cargo xtask test`")]
fn a_mariadb_that_lets_us_passes() {
    let output = check(&std::env::var("IDEMPOTENT_MARIADB_URL").unwrap());
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn what_cannot_be_used_is_one_line() {
    for (url, word) in [
        ("postgres://nobody@127.0.0.1:1/postgres", "cannot connect"),
        ("mysql://nobody@127.0.0.1:1/test", "cannot connect"),
        ("redis://127.0.0.1", "neither"),
        ("", "neither"),
    ] {
        let output = check(url);
        assert_eq!(output.status.code(), Some(1), "{url}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{url}: {said}");
        assert!(said.contains(word), "{url}: {said}");
    }
}
