//! Which mistakes are reported, and that none is reported for another's sake.

use proc_macro2::TokenStream;
use quote::quote;

use super::errors;
use super::expand;

/// The first lines of the errors that these arguments get.
fn facts(args: &str) -> Vec<String> {
    let handler = quote! {
        async fn handle(
            tx: &mut Transaction<'_, Sqlite>,
            msg: &Msg,
            mailer: &Mailer,
        ) -> Result<(), Error> {
            Ok(())
        }
    };
    let args: TokenStream = args.parse().unwrap();
    errors(expand(args, &handler))
        .iter()
        .map(|text| text.lines().next().unwrap_or_default().to_owned())
        .collect()
}

pub(super) fn key(key: &str) -> Vec<String> {
    facts(&format!("key = {key:?}, scope = \"s\", skip(mailer)"))
}

#[test]
fn keys_that_are_paths() {
    for text in [
        "msg",
        "msg.id",
        "msg.r#type",
        "msg.0",
        "msg.0.1",
        "msg. 0 .1",
        "msg.id()",
        "msg.meta.get(\"a,b\")",
        "msg.tags[0]",
        "msg.id,",
        " msg.id ,\n msg.channel , ",
        "&msg.id",
        "(msg.id)",
        "msg.lock().unwrap().id",
        "msg.get::<A, B>(msg.id)",
        "msg.get(-1)",
        "*msg",
        "*msg.id",
        "(*msg).id",
        "stable(f::<A, B>(&msg.x))",
        "stable(msg.now + 1)",
        "stable(1 + msg.ts as i64), msg.id",
        "stable(required(msg.ts))",
        "nullable(stable(msg.ts))",
        "msg.get(\"a b\"), msg.get(\"ab\")",
    ] {
        assert_eq!(key(text), [""; 0], "{text}");
    }
}

/// What stands in a key but must not, and what is said of it.
const NO_KEYS: &[(&str, &str)] = &[
    ("", "a part of the key is empty"),
    (",", "a part of the key is empty"),
    ("msg.id,,msg.kind", "a part of the key is empty"),
    ("msg.", "`msg.` in the key is not a path from a parameter"),
    (
        "msg.id; drop_all()",
        "`msg.id;drop_all()` in the key is not a path from a parameter",
    ),
    (
        "async {}",
        "`async{}` in the key is not a path from a parameter",
    ),
    (
        "msg.id + 1",
        "`msg.id+1` in the key is not a path from a parameter",
    ),
    (
        "msg.id as u8",
        "`msg.id as u8` in the key is not a path from a parameter",
    ),
    (
        "-msg.id",
        "`-msg.id` in the key is not a path from a parameter",
    ),
    (
        "msg.id?",
        "`?` in the key, which is made before the handler can wait or return",
    ),
    (
        "return 1",
        "`return` in the key, which is made before the handler can wait or return",
    ),
    (
        "stable(f(msg.id()?))",
        "`?` in the key, which is made before the handler can wait or return",
    ),
    (
        "stable(if msg.id { return 1 } else { 2 })",
        "`return` in the key, which is made before the handler can wait or return",
    ),
    (
        "msg.id().await",
        "`await` in the key, which is made before the handler can wait or return",
    ),
    (
        "stable(async { msg.id().await })",
        "`await` in the key, which is made before the handler can wait or return",
    ),
    (
        "42",
        "`42` in the key names no parameter, so that it cannot tell messages apart",
    ),
    (
        "-1",
        "`-1` in the key names no parameter, so that it cannot tell messages apart",
    ),
    (
        "\"msg.id\"",
        "`\"msg.id\"` in the key is a string, not a path",
    ),
    (
        "stable(1)",
        "`1` in the key names no parameter, so that it cannot tell messages apart",
    ),
    (
        "stable(f(LIMIT)), stable(\"a\")",
        "`f(LIMIT), \"a\"` in the key names no parameter, so that it cannot tell messages apart",
    ),
    (
        "stable(format!(\"{msg}-{mailer:?}\"))",
        "a format string in the key names `msg`, `mailer`, where no parameter is looked for",
    ),
    (
        "Self::ID",
        "`Self::ID` in the key is not a path from a parameter",
    ),
    (
        "&mut msg.id",
        "`&mut msg.id` in the key is not a path from a parameter",
    ),
    (
        "msg.tags[msg.i]",
        "`msg.tags[msg.i]` in the key is not a path from a parameter",
    ),
    (
        "f::<A, B>(&msg.x)",
        "`f::<A, B>(&msg.x)` in the key may give another value at every delivery, so that no duplicate is found",
    ),
    (
        "Uuid::new_v4()",
        "`Uuid::new_v4()` in the key gives another value at every delivery, so that no duplicate is found",
    ),
    (
        "stable(Utc::now().date())",
        "`Utc::now()` in the key gives another value at every delivery, so that no duplicate is found",
    ),
    (
        "stable(msg.id.unwrap_or_else(Uuid::new_v4))",
        "`Uuid::new_v4()` in the key gives another value at every delivery, so that no duplicate is found",
    ),
    (
        "stable(rand::random::<u64>())",
        "`rand::random()` in the key gives another value at every delivery, so that no duplicate is found",
    ),
    (
        "stable(f(msg.id, Ulid::new()))",
        "`Ulid::new()` in the key gives another value at every delivery, so that no duplicate is found",
    ),
    (
        "stable(msg.id.unwrap_or_else(ulid::Ulid::new))",
        "`Ulid::new()` in the key gives another value at every delivery, so that no duplicate is found",
    ),
    (
        "Ulid::new()",
        "`Ulid::new()` in the key gives another value at every delivery, so that no duplicate is found",
    ),
    (
        "format!(\"{}\", msg.id)",
        "`format!(\"{}\", msg.id)` in the key joins parts, so that different messages may share a text",
    ),
    (
        "stable(fastrand::u64(..))",
        "`fastrand::u64()` in the key gives another value at every delivery, so that no duplicate is found",
    ),
    (
        "rng.next_u64()",
        "`rng.next_u64()` in the key gives another value at every delivery, so that no duplicate is found",
    ),
    (
        "msg.parent.unwrap_or_default()",
        "`msg.parent.unwrap_or_default()` in the key gives all messages without it one key, and all but the first would be skipped",
    ),
    (
        "msg.parent.unwrap_or(mailer.id)",
        "`msg.parent.unwrap_or(mailer.id)` in the key gives all messages without it one key, and all but the first would be skipped",
    ),
    (
        "std::format!(\"{msg}\")",
        "`std::format!(\"{msg}\")` in the key joins parts, so that different messages may share a text",
    ),
    (
        "(msg.id, msg.f())",
        "`(msg.id, msg.f())` in the key is a tuple, not a path",
    ),
    (
        "()",
        "`()` in the key names no parameter, so that it cannot tell messages apart",
    ),
    ("stabel(msg.id)", "unknown wrapper `stabel` in the key"),
    ("msg.type", "`type` in the key is a keyword"),
    ("stable()", "`stable` stands around one part of the key"),
    (
        "required(msg.id, msg.x)",
        "`required` stands around one part of the key",
    ),
    (
        "required(nullable(msg.id))",
        "a part of the key is wrapped twice",
    ),
    ("msg.id, & msg . id", "`msg.id` stands twice in the key"),
    (
        "nosuch.id",
        "no parameter named `nosuch` in `handle`, for the key's `nosuch.id`",
    ),
    ("self.id", "`handle` has no `self`, for the key's `self.id`"),
    (
        "msg.get(other.id)",
        "no parameter named `other` in `handle`, for the key's `msg.get(other.id)`",
    ),
    (
        "msg.id, tx",
        "`tx` is the transaction, not part of the message",
    ),
    (
        "tx.get(msg.id)",
        "`tx` is the transaction, not part of the message",
    ),
    (
        "msg.get('a",
        "`msg.get('a` in the key is not a path from a parameter",
    ),
];

#[test]
fn keys_that_are_not() {
    for (text, fact) in NO_KEYS {
        assert_eq!(key(text), [*fact], "{text}");
    }
}

/// A member or a function in an asserted part is no parameter of that name.
#[test]
fn asserted_members_do_not_cover_parameters() {
    let coarse = "`mailer` is not part of the key: one event fanned out to two of them would run for the first, and be skipped for the second";
    for part in [
        "msg.mailer",
        "msg.mailer()",
        "msg::mailer(msg)",
        "msg.x == 0..msg.mailer",
    ] {
        assert_eq!(
            facts(&format!("key(stable({part})), scope = \"s\"")),
            [coarse],
            "{part}"
        );
    }
    assert_eq!(facts("key(stable(f(msg, mailer))), scope = \"s\""), [""; 0]);
}

/// Neither is a name that the part itself binds, nor the name of a field.
#[test]
fn names_of_an_asserted_part_do_not_cover_parameters() {
    let coarse = "`mailer` is not part of the key: one event fanned out to two of them would run for the first, and be skipped for the second";
    for part in [
        "msg.names().map(|mailer| mailer.len())",
        "msg.names().map(|(_, mailer): (u8, &str)| { mailer.len() })",
        "{ let mailer = msg.id; mailer + 1 }",
        "match msg.id { Some(mailer) => mailer, None => 0 }",
        "if let Some(mailer) = msg.id { mailer } else { 0 }",
        "Text { mailer: msg.id }",
        "vec![Text { mailer: msg.id }]",
    ] {
        assert_eq!(
            facts(&format!("key(stable({part})), scope = \"s\"")),
            [coarse],
            "{part}"
        );
    }
    for part in [
        "Text { mailer, id: msg.id }",
        "mailer.id().map(|mailer| mailer + msg.id)",
        "{ let mailer = mailer.id(); msg.id + mailer }",
        "{ let id = match msg.id { Some(mailer) => mailer, None => 0 }; mailer.id(id) }",
        "if let Some(mailer) = msg.id { mailer } else { mailer.id() }",
        "format!(\"{}\", mailer.id(msg))",
        "matches!(msg, Some(id) if id == mailer)",
        "msg.id | mailer.id",
    ] {
        assert_eq!(
            facts(&format!("key(stable({part})), scope = \"s\"")),
            [""; 0],
            "{part}"
        );
    }
}

#[test]
fn fresh_values_are_known_by_name() {
    for call in [
        "rng.random_range(0..9)",
        "rng.random_bool(0.5)",
        "rng.random_iter()",
        "rng.r#gen()",
        "rng.gen_bool(0.5)",
        "rng.gen_ratio(1, 2)",
        "rng.sample(Standard)",
        "today()",
        "generator.generate()",
        "Timestamp::now_v7()",
        "Uuid::new_v7(msg.ts)",
    ] {
        let said = key(&format!("stable(f(msg, {call}))"));
        assert_eq!(said.len(), 1, "{call}");
        assert!(said[0].contains("another value at every"), "{}", said[0]);
    }
    for call in [
        "Uuid::new_v5(&NS, msg.id)",
        "Order::new(msg.id)",
        "msg.generated()",
    ] {
        assert_eq!(key(&format!("stable({call})")), [""; 0], "{call}");
    }
}

/// What is said of a handler with these parameters.
fn of(args: &str, item: &str) -> Vec<String> {
    errors(expand(args.parse().unwrap(), &item.parse().unwrap()))
}

#[test]
fn transactions_by_sqlxs_own_aliases() {
    for alias in ["PgTransaction", "MySqlTransaction", "SqliteTransaction"] {
        let item = format!(
            "async fn handle(id: i64, db: &mut sqlx::{alias}<'_>) -> Result<(), Error> {{}}"
        );
        assert_eq!(of("key(id)", &item), [""; 0]);
        let item = item.replace("&mut", "&");
        let said = of("key(id), tx = db", &item);
        assert!(said[0].contains("not taken by `&mut`"), "{said:?}");
    }
}

/// `Context: Context` destructures a struct without fields.
#[test]
fn a_unit_struct_is_no_name_to_cover() {
    let item = "async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64, Context: app::Context) -> Result<(), Error> {}";
    assert_eq!(of("key(id)", item), [""; 0]);
    let item = item.replace("Context:", "Sent:");
    let said = of("key(id)", &item);
    assert!(
        said[0].starts_with("`Sent` is not part of the key"),
        "{said:?}"
    );
}

#[test]
fn a_pool_of_any_name_is_named() {
    let item = "async fn handle(db: &PgPool, id: i64) -> Result<(), Error> {}";
    let said = of("key(id)", item);
    assert!(said[0].contains("the pool `db`"), "{said:?}");
}

#[test]
fn a_default_scope_needs_a_path_of_its_own() {
    let handle = |body: &str| {
        of(
            "key(id)",
            &format!("async fn handle(tx: &mut Tx<'_>, id: i64) -> Result<(), Error> {{ {body} }}"),
        )
    };
    assert_eq!(handle("Ok(())"), [""; 0]);
    let said = handle("if true { Self::write(tx) }");
    assert!(said[0].contains("needs a `scope`"), "{said:?}");
    let item = "async fn handle(tx: &mut Tx<'_>, id: i64) -> Result<Self, Error> {}";
    assert!(of("key(id)", item)[0].contains("needs a `scope`"));
}

/// As `#[async_trait]` rewrites a pattern.
#[test]
fn a_pattern_under_a_boxed_future() {
    let item = |name: &str| {
        format!(
            "fn handle<'a>(&'a self, tx: &'a mut Tx<'_>, {name}: (i64, u8))
            -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>> {{ Box::pin(async move {{}}) }}"
        )
    };
    let said = of("key(self.id), scope = \"s\"", &item("__arg2"));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("name this parameter"), "{said:?}");
    assert_eq!(of("key(self.id), scope = \"s\"", &item("_rest")), [""; 0]);
}

#[test]
fn help_says_what_to_write() {
    for (args, help) in [
        (
            "key(\"msg.id\"), skip(mailer)",
            "remove the quotes, or write `key = \"msg.id\"`",
        ),
        (
            "key = \"msg.id\", \"mailer\"",
            "write one string, for instance `key = \"event.id, channel\"`",
        ),
        ("msg", "write `key(msg)`"),
        ("identity", "write `key(identity)`"),
        ("msg, mailer", "write `key(msg, mailer)`"),
        ("msg.id, mailer.x", "write `key(msg.id, mailer.x)`"),
        ("key = \"msg.type\", skip(mailer)", "write `r#type`"),
        (
            "key(nulable(msg.id)), skip(mailer)",
            "did you mean `nullable`?",
        ),
        (
            "key((msg.id, msg.f())), skip(mailer)",
            "write the parts side by side, `msg.id, msg.f()`",
        ),
        (
            "key(format!(\"{a}\", a = msg.id)), skip(mailer)",
            "write the values as parts of their own, for instance `key(msg.id)`",
        ),
        (
            "key(format!(\"order\")), skip(mailer)",
            "name a field of the message, for instance `event.id`",
        ),
        (
            "key(required(msg.sent_at)), skip(mailer)",
            "name the id that the message was given by its producer, for instance `event.id`; if the producer sets `sent_at` once, write `stable(required(msg.sent_at))`",
        ),
        (
            "key(msg.headers[\"offset\"]), skip(mailer), scope = \"s\"",
            "add the partition; if there is only one, write `stable(msg.headers[\"offset\"])`",
        ),
        ("skp", "did you mean `skip`?"),
        ("key(msg.id), skip(mailer), sc", "did you mean `scope`?"),
        ("key(msg.id), skip(mai)", "did you mean `mailer`?"),
        (
            "key(msg.id), skip(mailer), retry",
            "the arguments are `key`, `scope`, `was`, `tx`, `skip`, `replay`, `fingerprint`, `retain`, `redelivery`, `busy`, `each`, `guard`, `bind`, `table`, `crate`",
        ),
        ("key(msg.id), skip(self, mailer)", "remove it"),
        ("key(msg.id), skip(mailer, mailer)", "keep one of the two"),
        (
            "key(format!(\"{}-{}\", msg.id, mailer))",
            "write the values as parts of their own, for instance `key(msg.id, mailer)`",
        ),
        (
            "key(stable(format!(\"{msg}-{mailer}\")))",
            "write `key(msg, mailer)`: the parts are joined without ambiguity",
        ),
    ] {
        let said = of(
            args,
            "async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: &Msg, mailer: &Mailer) -> Result<(), Error> {}",
        );
        assert_eq!(said.len(), 1, "{args}: {said:?}");
        assert_eq!(
            said[0].lines().last(),
            Some(&*format!("help: {help}")),
            "{args}"
        );
    }
}

#[test]
fn a_part_with_a_doubtful_name_stays_a_part() {
    assert_eq!(facts("key(msg.created)").len(), 2, "and `mailer`");
    assert_eq!(
        facts("key(msg.created, msg.kind()), skip(mailer)").len(),
        2,
        "and the scope"
    );
}

#[test]
fn the_attribute_stands_once_on_what_it_makes_idempotent() {
    let item = "#[idempotent_runtime::idempotent(key(id))] async fn handle(tx: &mut Tx<'_>, id: i64) -> Result<(), Error> {}";
    assert!(of("key(id)", item)[0].starts_with("`#[idempotent]` stands twice"));
    let item = "async fn handle(tx: &mut Tx<'_>, id: i64) -> Result<Outcome<u8>, Error> {}";
    assert!(of("key(id)", item)[0].contains("what is inside the `Outcome`"));
    let item = "async fn handle(tx: &mut Tx<'_>, id: ) -> Result<u8, Error> {}";
    assert!(of("key(id)", item)[0].contains("cannot be read: "));
}

/// What follows from a mistake is not reported beside it.
#[test]
fn one_mistake_is_one_error() {
    for args in [
        "",
        "kye(msg.id), skip(mailer)",
        "key(mgs.id), skip(mailer)",
        "key(msg.id), skip(mialer)",
        "key(msg.id), skip = mailer",
        "key(msg.id), skp(mailer)",
        "key(msg.id), skip(mailer), tx = trx",
        "key(msg.id), skip(mailer), tx = \"tx\"",
        "key(msg.id()), skip(mailer), scpe = \"s\"",
        "key(msg.id()), skip(mailer), scope = \"a b\"",
        "key(msg.id()), skip(mailer)",
        "key(msg.id)",
        "key(msg.id, now()), scope = \"s\"",
        "key(msg.id) skip(mailer)",
        "key = \"msg.id\" skip(mailer)",
        "key(msg.id), skip(mailer), tx",
        "key(msg.id), skip(mailer), tx = ",
        "key(msg.id), skip(mailer), bind = tx",
        "key(msg.id), skip(mailer, tx)",
        "key(msg.id), skip(mailer, msg)",
        "key(msg.id), key(msg.id), skip(mailer)",
        "key(msg.id), skip(mailer), \"scope\"",
        "key(msg.id), skip(mailer), table = \"A\"",
        "key(msg.id), skip(mailer), guard = \"verfy\"",
        "key(msg.id), skip(mailer), crate = 3",
    ] {
        assert_eq!(facts(args).len(), 1, "{args}: {:?}", facts(args));
    }
}

#[test]
fn mistakes_of_a_stage_are_reported_together() {
    assert_eq!(facts("kye, scope = \"\", guard = \"x\", tx = 3").len(), 4);
    assert_eq!(facts("key(a, b), tx = c, skip(d), bind = msg").len(), 5);
    assert_eq!(facts("key(msg.id())").len(), 2);
    assert_eq!(
        facts("key(mgs.id), guard = \"verfy\", skip(nosuch)").len(),
        3
    );
    assert_eq!(facts("key(msg.id), guard = \"verfy\"").len(), 2);
    assert_eq!(
        facts("key(msg.id,, mgs), skip(mialer), scope = \"\"").len(),
        4
    );
}
