//! The lock file, written and compared by a process of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use expect_test::expect;
use idempotent_runtime::handlers::{LockError, check_lock, check_scopes};

/// As a user writes it: here with the file of this package, and by the other tests
/// each in a directory of its own.
#[test]
fn handlers_keep_their_keys() -> Result<(), LockError> {
    check_lock("idempotent.lock")
}

/// A directory that is gone in the end.
struct Package(PathBuf);

impl Package {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lock_{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("the target directory can be written");
        Self(path)
    }

    /// With a lock file of all handlers.
    fn locked(name: &str) -> Self {
        let package = Self::new(name);
        package.run(Some("write")).expect("the file is written");
        package
    }

    /// What the user's test prints when it fails.
    fn run(&self, variable: Option<&str>) -> Result<(), String> {
        let this = env::current_exe().expect("this is a program");
        let mut command = Command::new(this);
        command
            .args(["--exact", "lock::handlers_keep_their_keys"])
            .arg("--nocapture")
            .current_dir(&self.0)
            .env_remove("IDEMPOTENT_LOCK");
        if let Some(variable) = variable {
            command.env("IDEMPOTENT_LOCK", variable);
        }
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("running 1 test"), "{said}");
        if output.status.success() {
            return Ok(());
        }
        let all = said.into_owned() + &String::from_utf8_lossy(&output.stderr);
        let (_, error) = all.split_once("Error: ").expect("it returns an error");
        let (error, _) = error.split_once("test lock::").unwrap_or((error, ""));
        // The place of a handler, without its line.
        let lines = error.trim_end().lines().map(|line| {
            let Some((before, after)) = line.split_once(".rs:") else {
                return line.to_owned();
            };
            let number = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
            format!("{before}.rs:_{number}")
        });
        Err(lines.collect::<Vec<_>>().join("\n"))
    }

    fn text(&self) -> String {
        fs::read_to_string(self.0.join("idempotent.lock")).expect("the file is there")
    }

    fn edit(&self, from: &str, to: &str) {
        let text = self.text();
        assert!(text.contains(from), "{text}");
        fs::write(self.0.join("idempotent.lock"), text.replace(from, to)).expect("it is written");
    }
}

impl Drop for Package {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_absent_file_is_an_error_and_is_not_made() {
    let package = Package::new("absent");
    expect![[r#"
        `idempotent.lock` does not exist
        help: run this test with `IDEMPOTENT_LOCK=write` to write it, and commit it"#]]
    .assert_eq(&package.run(None).unwrap_err());
    assert!(!package.0.join("idempotent.lock").exists());
}

#[test]
fn what_is_written_is_readable_and_the_same_again() {
    let package = Package::locked("round_trip");
    expect![[r#"
        # Scopes and keys of the idempotent handlers, checked by a test. A changed line is a handler that no
        # longer recognises what it has processed, unless it says `was(…)`.
        handlers::kinds::by_macro(id)	id
        handlers::kinds::free(id)	id
        handlers::kinds::loop(id)	id
        kinds.arguments	id, required(parent), stable(at+1)	inbox.seen
        kinds.batch	id
        kinds.default_method	id
        kinds.generic	id
        kinds.inner	id
        kinds.method	id
        kinds.object	id
        kinds.trait_method	id
        renamed	account, order
        renamed_path	account
    "#]].assert_eq(&package.text());
    assert_eq!(package.run(None), Ok(()));
    assert_eq!(package.run(Some("")), Ok(()));
    let before = package.text();
    assert_eq!(package.run(Some("write")), Ok(()));
    assert_eq!(package.text(), before);
    package.edit("\n", "\r\n"); // as git does on Windows
    assert_eq!(package.run(None), Ok(()));
}

#[test]
fn a_renamed_scope_asks_for_was() {
    let package = Package::locked("renamed");
    package.edit("kinds.arguments\t", "kinds.old\t");
    expect![[r#"
        the handlers are not those of `idempotent.lock`

        `kinds.old` with the key `id, required(parent), stable(at+1)` is gone: what it has processed would run again under another scope
        help: add `was("kinds.old")` to handlers::kinds::arguments, tests/tests/handlers/kinds.rs:_, if that has its messages now
        help: if its crate is not linked into this test, write `use its_crate as _;`

        `kinds.arguments` is new (handlers::kinds::arguments, tests/tests/handlers/kinds.rs:_)
        help: run this test with `IDEMPOTENT_LOCK=write` to add it

        to accept all that differs, run this test with `IDEMPOTENT_LOCK=write` and commit `idempotent.lock`"#]].assert_eq(&package.run(None).unwrap_err());
}

#[test]
fn a_handler_that_is_gone_asks_for_was() {
    let package = Package::locked("gone");
    package.edit("kinds.batch\t", "kinds.gone\tevent.id\nkinds.batch\t");
    expect![[r#"
        the handlers are not those of `idempotent.lock`

        `kinds.gone` with the key `event.id` is gone: what it has processed would run again under another scope
        help: add `was("kinds.gone")` to the handler that has its messages now; if none has, accept
        help: if its crate is not linked into this test, write `use its_crate as _;`

        to accept all that differs, run this test with `IDEMPOTENT_LOCK=write` and commit `idempotent.lock`"#]].assert_eq(&package.run(None).unwrap_err());
}

#[test]
fn a_changed_key_asks_for_was() {
    let package = Package::locked("changed");
    package.edit("kinds.method\tid", "kinds.method\torder, id");
    expect![[r#"
        the handlers are not those of `idempotent.lock`

        `kinds.method` had the key `order, id`, and has `id` now (handlers::kinds::Stock<_>::take, tests/tests/handlers/kinds.rs:_): what it has processed would run again, and a new message may meet the key of an old one
        help: give it another scope, and add `was(scope = "kinds.method", key = "order, id")` if the two keys stand for each other one to one
        help: if only the spelling is another, accept

        to accept all that differs, run this test with `IDEMPOTENT_LOCK=write` and commit `idempotent.lock`"#]].assert_eq(&package.run(None).unwrap_err());
}

#[test]
fn a_changed_key_in_a_default_scope_asks_for_was() {
    let package = Package::locked("changed_by_default");
    package.edit(
        "handlers::kinds::free(id)\tid",
        "handlers::kinds::free(order)\torder",
    );
    expect![[r#"
        the handlers are not those of `idempotent.lock`

        `handlers::kinds::free(order)` with the key `order` is gone: what it has processed would run again under another scope
        help: add `was(scope = "handlers::kinds::free(order)", key = "order")` to handlers::kinds::free, tests/tests/handlers/kinds.rs:_, if that has its messages now
        help: if its crate is not linked into this test, write `use its_crate as _;`

        `handlers::kinds::free(id)` is new (handlers::kinds::free, tests/tests/handlers/kinds.rs:_)
        help: run this test with `IDEMPOTENT_LOCK=write` to add it

        to accept all that differs, run this test with `IDEMPOTENT_LOCK=write` and commit `idempotent.lock`"#]].assert_eq(&package.run(None).unwrap_err());
}

#[test]
fn another_table_is_another_memory() {
    let package = Package::locked("table");
    package.edit("\tinbox.seen", "");
    expect![[r#"
        the handlers are not those of `idempotent.lock`

        `kinds.arguments` had its keys in the table `processed_messages`, and has them in `inbox.seen` now (handlers::kinds::arguments, tests/tests/handlers/kinds.rs:_): what it has processed would run again
        help: move its rows before you accept

        to accept all that differs, run this test with `IDEMPOTENT_LOCK=write` and commit `idempotent.lock`"#]].assert_eq(&package.run(None).unwrap_err());
}

#[test]
fn a_new_handler_is_added_on_purpose() {
    let package = Package::locked("new");
    package.edit("kinds.method\tid\n", "");
    expect![[r#"
        the handlers are not those of `idempotent.lock`

        `kinds.method` is new (handlers::kinds::Stock<_>::take, tests/tests/handlers/kinds.rs:_)
        help: run this test with `IDEMPOTENT_LOCK=write` to add it

        to accept all that differs, run this test with `IDEMPOTENT_LOCK=write` and commit `idempotent.lock`"#]].assert_eq(&package.run(None).unwrap_err());
    assert_eq!(package.run(Some("write")), Ok(()));
    assert_eq!(package.run(None), Ok(()));
}

#[test]
fn what_is_no_line_is_named() {
    let package = Package::locked("conflict");
    package.edit("kinds.batch\t", "<<<<<<< HEAD\nkinds.batch\t");
    expect![[r#"
        the handlers are not those of `idempotent.lock`

        line 7 is not a scope, a tab, a key: "<<<<<<< HEAD"

        to accept all that differs, run this test with `IDEMPOTENT_LOCK=write` and commit `idempotent.lock`"#]].assert_eq(&package.run(None).unwrap_err());
}

#[test]
fn another_value_of_the_variable_is_named() {
    let package = Package::locked("variable");
    expect![[r#"
        `IDEMPOTENT_LOCK` is "1"
        help: write `IDEMPOTENT_LOCK=write`, or leave it out to compare"#]]
    .assert_eq(&package.run(Some("1")).unwrap_err());
}

#[test]
fn scopes_that_are_not_shared_pass() {
    check_scopes().expect("every handler has its own");
}
