//! Nothing is lost, and what is said of each is right.

use expect_test::expect;
use idempotent_fixture_renamed as _;
use idempotent_runtime::handlers;

#[test]
fn every_handler_is_listed_with_its_key_and_its_function() {
    let lines: Vec<String> = handlers()
        .iter()
        .map(|info| format!("{} <- {} | {}\n", info.scope(), info.key(), info.function()))
        .collect();
    expect![[r#"
        handlers::kinds::by_macro(id) <- id | handlers::kinds::by_macro
        handlers::kinds::free(id) <- id | handlers::kinds::free
        handlers::kinds::loop(id) <- id | handlers::kinds::loop
        kinds.arguments <- id, required(parent), stable(at+1) | handlers::kinds::arguments
        kinds.batch <- id | handlers::kinds::batch
        kinds.default_method <- id | handlers::kinds::Handle::by_default
        kinds.generic <- id | handlers::kinds::generic
        kinds.inner <- id | handlers::kinds::outer::inner
        kinds.method <- id | handlers::kinds::Stock<_>::take
        kinds.object <- id | <handlers::kinds::Stock<u8> as handlers::kinds::Object>::handle
        kinds.trait_method <- id | <handlers::kinds::Stock<_> as handlers::kinds::Handle>::handle
        renamed <- account, order | idempotent_fixture_renamed::accept
        renamed_path <- account | idempotent_fixture_renamed::quoted
    "#]]
    .assert_eq(&lines.concat());
}

#[test]
fn a_handler_says_all_that_its_attribute_says() {
    let all = handlers();
    let [info] = all
        .iter()
        .filter(|info| info.scope() == "kinds.arguments")
        .collect::<Vec<_>>()[..]
    else {
        panic!("one handler has this scope");
    };
    let source = include_str!("kinds.rs").lines();
    let line = source.clone().position(|line| line == "#[idempotent(");
    assert_eq!(Some(info.line() as usize), line.map(|line| line + 1));
    assert!(
        info.file().ends_with("tests/handlers/kinds.rs"),
        "{}",
        info.file()
    );
    assert_eq!(info.table().to_string(), "inbox.seen");
    assert_eq!((info.guard(), info.busy()), ("savepoint", "fail"));
    assert_eq!(info.retain().map(|time| time.as_secs()), Some(36 * 3600));
    assert_eq!(info.redelivery().map(|time| time.as_secs()), Some(90 * 60));
    let was: Vec<_> = info.was().collect();
    assert_eq!(
        was,
        [("kinds.former", info.key()), ("kinds.first", "amount")]
    );
    assert!(info.replay());
    assert_eq!(info.fingerprint(), Some("amount"));
    assert_eq!(info.each(), None);
    let text = info.to_string();
    let (arguments, place) = text.split_once(" on ").expect("`on` stands between");
    expect![[r#"scope = "kinds.arguments", key = "id, required(parent), stable(at+1)", was(scope = "kinds.former", key = "id, required(parent), stable(at+1)"), was(scope = "kinds.first", key = "amount"), replay, fingerprint = "amount", retain = "36 hours", redelivery = "90 minutes", busy = "fail", guard = "savepoint", table = "inbox.seen""#]].assert_eq(arguments);
    assert!(
        place.starts_with("handlers::kinds::arguments, ") && place.contains("kinds.rs:"),
        "{place}"
    );
}

#[test]
fn what_is_not_said_is_left_out() {
    let all = handlers();
    let mut batches = all.iter().filter(|info| info.each().is_some());
    let info = batches.next().expect("there is a batch");
    assert_eq!(info.each(), Some("id in ids"));
    let text = info.to_string();
    assert!(
        text.starts_with(
            "scope = \"kinds.batch\", key = \"id\", each = \"id in ids\" on handlers::"
        ),
        "{text}"
    );
}
