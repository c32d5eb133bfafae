//! Reads the expected messages of the attribute and the derive: how each is
//! written, that each constructor has a case, and that errors in a body read as
//! they would without the attribute.

mod page;

use std::fs;
use std::path::{Path, PathBuf};

/// What only this message says, for each constructor in `diagnostics`.
const ATTRIBUTE: &[(&str, &str)] = &[
    ("argument_name", "an argument starts with its name"),
    ("second_string", "this string is not part of the key"),
    ("unknown_argument", "unknown argument"),
    ("repeated_argument", "is given twice"),
    ("argument_shape", "is not written like this"),
    ("missing_comma", "two arguments are not separated"),
    ("missing_key", "has no `key`"),
    ("scope_alphabet", "is not a scope"),
    ("finer_than_before", "beside what it was"),
    ("same_as_now", "is the name that the handler has now"),
    ("repeated_was", "this earlier name stands twice"),
    ("two_keys_in_scope", "two keys share the scope"),
    ("was_without_scope", "the default scope ends with the key"),
    ("unread_period", "is not a stretch of time"),
    ("retained_too_short", "such a message would run twice"),
    (
        "excluded_by_each",
        "speaks of one message, and `each` of many",
    ),
    (
        "batch_without_element",
        "all messages of a batch would be one",
    ),
    ("batch_as_element", "is both the batch and one message"),
    ("batch_in_key", "in the key is the whole batch"),
    ("no_vec", "is of is not a `Vec`"),
    ("unknown_busy", "unknown `busy ="),
    ("unknown_guard", "unknown guard"),
    ("table_name", "is not a table name"),
    ("skipped_twice", "is skipped twice"),
    ("skipped_self", "`self` needs no `skip`"),
    ("empty_part", "a part of the key is empty"),
    ("repeated_part", "stands twice in the key"),
    ("quoted_part", "in the key is a string, not a path"),
    ("constant", "names no parameter, so that"),
    (
        "leaves_the_key",
        "which is made before the handler can wait or return",
    ),
    ("formatted_part", "in the key joins parts"),
    ("captured", "a format string in the key names"),
    ("not_a_path", "in the key is not a path from a parameter"),
    (
        "unasserted_call",
        "may give another value at every delivery",
    ),
    ("fresh_value", "gives another value at every delivery"),
    ("unstable_name", "is, by its name,"),
    ("offset_alone", "without its partition"),
    ("absent_default", "in the key gives all messages without it"),
    ("unknown_wrapper", "unknown wrapper"),
    ("keyword_in_path", "in the key is a keyword"),
    ("bare_key", "stands outside the key"),
    ("outward_type", "returns what is inside the `Outcome`"),
    ("unread_signature", "cannot be read: "),
    ("too_deep", "is nested too deeply"),
    ("second_attribute", "stands twice on this handler"),
    ("tuple_part", "in the key is a tuple"),
    ("long_part", "is too long to be read"),
    ("wrapper_arity", "stands around one part of the key"),
    ("wrapped_twice", "is wrapped twice"),
    ("unknown_parameter", "no parameter named"),
    (
        "too_coarse",
        "would run for the first, and be skipped for the second",
    ),
    (
        "compared_and_skipped",
        "is both in the fingerprint and skipped",
    ),
    ("in_key_and_skipped", "is both in the key and skipped"),
    ("skipped_transaction", "which is never part of the key"),
    (
        "transaction_in_key",
        "is the transaction, not part of the message",
    ),
    ("bound_name_taken", "`bind` would hide"),
    ("not_a_function", "goes on an `async fn`"),
    ("no_body", "has no body to make idempotent"),
    ("not_async", "is not `async`"),
    ("no_result", "does not return a `Result`"),
    ("impl_in_result", "`impl Trait` in the return type"),
    ("two_transactions", "a second transaction"),
    ("no_transaction", "takes no transaction"),
    ("unnamed_transaction", "the transaction has no name"),
    ("not_a_transaction", "in place of the transaction"),
    ("transaction_not_mut", "is not taken by `&mut`"),
    ("hidden_pattern", "takes this pattern out of the signature"),
    ("scope_required", "needs a `scope`: "),
];

/// The same of the derive.
const DERIVE: &[(&str, &str)] = &[
    ("union", "a union has no key text"),
    ("no_fields", "has no field that counts"),
    ("transparent_fields", "`transparent` is for one field"),
    ("transparent_enum", "`transparent` is for a struct"),
    ("unstable_field", "is, by its name,"),
    ("offset_field", "without its partition"),
    ("fresh_default", "gives a message without"),
    ("same_text", "two variants have the text"),
    ("empty_name", "the name of a variant cannot be empty"),
    ("marker_outside_fields", "a bare `#[key]` marks a field"),
    ("empty_list", "says nothing"),
    ("not_a_list", "is not written with `=`"),
    ("malformed", "expected an argument"),
    ("unknown_argument", "in `#[key(...)]`"),
    ("misplaced_argument", "says nothing about"),
    ("repeated_argument", "is given twice"),
    ("needless_value", "takes no value"),
    ("string_expected", "takes a string"),
    ("path_expected", "takes a path"),
    ("nullable_and_required", "exclude each other"),
];

/// Those of the types' own words, which the runtime holds.
const TYPES: [&str; 13] = [
    "a timestamp is not a stable idempotency key",
    "a float is not a stable idempotency key",
    "an `Instant` cannot be part of an idempotency key",
    "a hash map or hash set cannot be part of an idempotency key",
    "an `Option` in a key must say what `None` means",
    "cannot be part of an idempotency key",
    "in place of the transaction would commit the key apart",
    "cannot be given back to a duplicate",
    "needs a database with many writers",
    "is not an `Option`",
    "cannot carry the errors of `#[idempotent]`",
    "an idempotent handler returns a `Result`",
    "is not a database that can hold idempotency keys",
];

fn fail() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui/fail")
}

/// The files of a directory and of those in it.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|known| known == extension) {
            found.push(path);
        }
    }
    found.sort();
    assert!(!found.is_empty(), "{}", directory.display());
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The errors in a file that are the attribute's own: their first two lines.
fn own_errors(text: &str) -> Vec<(&str, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.windows(2);
    pairs
        .filter_map(|pair| {
            let fact = pair[0].strip_prefix("error: ")?;
            Some((fact, pair[1].trim_start().strip_prefix("help: ")?))
        })
        .collect()
}

#[test]
fn each_fact_is_a_phrase_and_each_help_a_way_out() {
    let mut count = 0;
    for path in files(&fail(), "stderr") {
        let text = read(&path);
        let own = own_errors(&text);
        count += own.len();
        for (fact, help) in own {
            let place = format!("{}: {fact}", path.display());
            let first = fact.chars().next().unwrap();
            assert!(first.is_lowercase() || first == '`', "{place}");
            assert!(!fact.ends_with('.') && !help.ends_with('.'), "{place}");
            assert_eq!(fact.matches('`').count() % 2, 0, "{place}");
            assert_eq!(help.matches('`').count() % 2, 0, "{place}");
            let is_plain = |letter: char| letter.is_ascii() || letter.is_alphanumeric();
            assert!(fact.chars().chain(help.chars()).all(is_plain), "{place}");
            for word in ["invalid", "sorry", "please", "unable", "http", "!!"] {
                let said = format!("{fact}\n{help}").to_lowercase();
                assert!(!said.contains(word), "{place}: {word}");
            }
        }
        assert!(!text.contains("panicked"), "{}", path.display());
    }
    assert!(count > 50, "{count}");
}

/// An error without `help:` is rustc's: in the areas of the attribute's own
/// syntax there is none.
#[test]
fn mistakes_in_the_attribute_are_the_attributes_to_report() {
    for area in ["args", "handler"] {
        for path in files(&fail().join(area), "stderr") {
            let text = read(&path);
            let errors = text
                .lines()
                .filter(|line| line.starts_with("error"))
                .count();
            let is_ours = errors == own_errors(&text).len();
            assert!(
                is_ours || path.to_string_lossy().contains("half_typed_"),
                "{}",
                path.display()
            );
        }
    }
}

/// What the compiler alone can know of, and says well.
const OF_RUSTC: [&str; 4] = [
    "not_send",
    "phantom_data_of_ones_own",
    "unknown_crate",
    "unknown_field",
];

/// Of each type error, too, the first line is ours.
#[test]
fn type_errors_begin_with_our_words() {
    let areas = ["derive", "families", "key", "types"];
    let areas = areas.iter().map(|area| fail().join(area));
    for path in areas.flat_map(|area| files(&area, "stderr")) {
        let text = read(&path);
        let own: Vec<_> = own_errors(&text).iter().map(|(fact, _)| *fact).collect();
        for line in text.lines().filter(|line| line.starts_with("error")) {
            let (_, fact) = line.split_once(": ").unwrap();
            let is_ours = own.contains(&fact) || TYPES.iter().any(|words| fact.contains(words));
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert!(
                is_ours || OF_RUSTC.contains(&name),
                "{}: {line}",
                path.display()
            );
        }
    }
}

/// Each implementation that is refused stands in `key/refused.rs`, or beside
/// those of its crate.
#[test]
fn every_refused_type_has_a_case() {
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../idempotent-runtime/src/key");
    let programs = files(&fail().join("types"), "rs");
    let programs: String = programs.iter().map(|path| read(path)).collect();
    let mut count = 0;
    for source in ["refused.rs", "foreign.rs"] {
        let source = read(&runtime.join(source));
        for line in source
            .lines()
            .filter(|line| line.contains("Unasserted<'a>:"))
        {
            let Some((_, rest)) = line.split_once(" KeyPart for ") else {
                continue;
            };
            let ty = rest.split(['<', ' ']).next().unwrap();
            assert!(programs.contains(ty), "no case of `{ty}`");
            count += 1;
        }
    }
    assert_eq!(count, 11, "implementations that are refused");
}

#[test]
fn every_message_has_a_case() {
    let derive = ["derive"];
    let attribute = ["args", "families", "handler", "key"];
    every_message_of(DERIVE, &derive, "derive/diagnostics.rs");
    for source in ["arguments.rs", "handler.rs", "key.rs"] {
        every_message_of(ATTRIBUTE, &attribute, &format!("diagnostics/{source}"));
    }

    let texts = texts(&["derive", "types"]);
    for words in TYPES {
        assert!(texts.contains(words), "no case of: {words}");
    }
}

/// Each is listed, and each that is listed is said in one of the areas.
fn every_message_of(messages: &[(&str, &str)], areas: &[&str], source: &str) {
    let texts = texts(areas);
    for (constructor, words) in messages {
        assert!(texts.contains(words), "no case of `{constructor}`: {words}");
    }
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../idempotent-macros/src/{source}"));
    let source = read(&source);
    let constructors = source.lines().filter_map(|line| {
        let (visibility, rest) = line.split_once(" fn ")?;
        let is_message = visibility.starts_with("pub(") && !rest.ends_with("-> String {");
        is_message.then(|| rest.split(['(', '<']).next())?
    });
    for name in constructors {
        assert!(
            messages.iter().any(|(known, _)| *known == name),
            "say which words are those of `{name}`, and add a case"
        );
    }
}

fn texts(areas: &[&str]) -> String {
    let areas = areas.iter().map(|area| fail().join(area));
    areas
        .flat_map(|area| files(&area, "stderr"))
        .map(|path| read(&path))
        .collect()
}

#[test]
fn the_documentation_quotes_what_is_said() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../idempotent-macros/src/idempotent.md");
    let docs = read(&docs);
    let quoted: Vec<&str> = docs
        .lines()
        .filter_map(|line| line.strip_prefix("// "))
        .filter(|line| line.starts_with("error: ") || line.starts_with("help: "))
        .collect();
    assert!(!quoted.is_empty());
    let texts = texts(&["args", "families", "handler", "key"]);
    for words in quoted {
        assert!(texts.contains(words), "no case says: {words}");
    }
}

/// Where a variable is moved or borrowed, rustc also says of an `async` block
/// how that holds the variable, and offers less.
const CAPTURED: [&str; 3] = [
    "moved_value",
    "moved_while_borrowed",
    "moved_out_of_reference",
];

/// Each program in `body` stands in `body/plain` too, without the attribute.
///
/// All but those of `another_result`: where a whole `Result` is the wrong one,
/// rustc labels the return type of a function, and explains that of an `async`
/// block in a note.
#[test]
fn errors_in_a_body_read_as_without_the_attribute() {
    let body = fail().join("body");
    let mut count = 0;
    for plain in files(&body.join("plain"), "rs") {
        let with = body.join(plain.file_name().unwrap());
        assert_differ_by_the_attribute(&with, &plain);

        let said = |path: &Path| read(&path.with_extension("stderr"));
        let (with, without) = (said(&with), said(&plain).replace("/body/plain/", "/body/"));
        let name = plain.file_stem().unwrap().to_str().unwrap();
        if CAPTURED.contains(&name) {
            let start = |text: &str| text.lines().take(2).map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(start(&with), start(&without), "{name}");
        } else {
            assert_eq!(with, without, "{name}");
        }
        count += 1;
    }
    assert_eq!(count, 11);
}

fn assert_differ_by_the_attribute(with: &Path, plain: &Path) {
    let differing: Vec<_> = read(with)
        .lines()
        .zip(read(plain).lines())
        .filter(|(with, plain)| with != plain)
        .map(|(with, plain)| (with.to_owned(), plain.to_owned()))
        .collect();
    let expected = [
        ("use idempotent_runtime::idempotent;", "//"),
        ("#[idempotent(key(msg.id))]", "//"),
    ];
    let expected = expected.map(|(with, plain)| (with.to_owned(), plain.to_owned()));
    assert_eq!(differing, expected, "{}", plain.display());
}
