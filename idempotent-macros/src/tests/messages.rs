//! Which mistakes are reported, and that none is reported for another's sake.

use proc_macro2::TokenStream;
use quote::quote;

use super::errors;
use crate::expand::expand;

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

fn key(key: &str) -> Vec<String> {
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
    ("msg.id,,x", "a part of the key is empty"),
    ("msg.", "`msg.` in the key is not a path from a parameter"),
    (
        "return 1",
        "`return 1` in the key is not a path from a parameter",
    ),
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
    ("*msg", "`*msg` in the key is not a path from a parameter"),
    (
        "msg.id?",
        "`msg.id?` in the key is not a path from a parameter",
    ),
    ("42", "`42` in the key is not a path from a parameter"),
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
        "`now()` in the key gives another value at every delivery, so that no duplicate is found",
    ),
    (
        "stable(msg.id.unwrap_or_else(Uuid::new_v4))",
        "`new_v4()` in the key gives another value at every delivery, so that no duplicate is found",
    ),
    (
        "stable(rand::random::<u64>())",
        "`random()` in the key gives another value at every delivery, so that no duplicate is found",
    ),
    (
        "format!(\"{}\", msg.id)",
        "`format!(\"{}\", msg.id)` in the key may give another value at every delivery, so that no duplicate is found",
    ),
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
    let coarse = "`mailer` is not part of the key: two calls that differ only in it would count as one message";
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
}
