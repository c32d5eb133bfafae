//! Everything that may stand in a key, and the text it makes.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

use super::{AppError, begin, delivered};

type Tx<'c> = Transaction<'c, Sqlite>;
type Done = Result<(), AppError>;

struct Msg {
    r#type: &'static str,
    meta: BTreeMap<&'static str, String>,
    tags: Vec<u8>,
    pair: (u8, (u8, u8)),
    parent: Option<u8>,
    at: SystemTime,
    amount: f64,
    lock: Mutex<(u8, String)>,
}

fn msg() -> Msg {
    Msg {
        r#type: "paid",
        meta: BTreeMap::from([("a,b", "x/y".to_owned())]),
        tags: vec![4, 5],
        pair: (1, (2, 3)),
        parent: None,
        at: SystemTime::UNIX_EPOCH + Duration::from_secs(1),
        amount: 0.5,
        lock: Mutex::new((6, "seven".to_owned())),
    }
}

impl Msg {
    fn id(&self) -> u8 {
        self.tags[0] * 10 + 2
    }

    fn meta(&self, name: &str) -> Option<&String> {
        self.meta.get(name)
    }

    fn first<T: From<u8>>(&self, of: &[u8]) -> T {
        of[0].min(self.tags[0]).into()
    }
}

fn joined<A: ToString, B: ToString>(a: &A, b: &B) -> String {
    a.to_string() + &b.to_string()
}

mod loops {
    pub(super) mod r#in {
        use super::super::*;

        #[idempotent(key = "msg.r#type", scope = "raw")]
        pub(crate) async fn r#move(tx: &mut Tx<'_>, msg: &Msg) -> Done {
            Ok(())
        }
    }
}

#[idempotent(key = "msg.r#type, r#final")]
async fn r#loop(tx: &mut Tx<'_>, msg: &Msg, r#final: bool) -> Done {
    Ok(())
}

#[idempotent(key(msg.pair.0, msg.pair.1.1, msg.pair.1 .0), scope = "tuples")]
async fn tuples(tx: &mut Tx<'_>, msg: &Msg) -> Done {
    Ok(())
}

#[idempotent(key = "msg.0.1, msg. 1 . 0", scope = "quoted_tuples")]
async fn quoted_tuples(tx: &mut Tx<'_>, msg: ((u8, u8), (u8, u8))) -> Done {
    Ok(())
}

#[idempotent(
    key = "
        msg.id(),
        msg.tags[1],
        msg.meta[\"a,b\"],
        required(msg.meta(\"a,b\")),
        msg.first::<u64>(&msg.tags),
    ",
    scope = "calls"
)]
async fn calls(tx: &mut Tx<'_>, msg: &Msg) -> Done {
    Ok(())
}

#[idempotent(
    key(msg.id(), msg.tags[1], msg.meta["a,b"], required(msg.meta("a,b")), msg.first::<u64>(&msg.tags)),
    scope = "unquoted_calls"
)]
async fn unquoted_calls(tx: &mut Tx<'_>, msg: &Msg) -> Done {
    Ok(())
}

#[idempotent(
    key = "nullable(msg.parent), stable(msg.at), stable(msg.amount), stable(msg.pair.0 as u16 + 1), &msg.id()",
    scope = "wrapped"
)]
async fn wrapped(tx: &mut Tx<'_>, msg: &Msg) -> Done {
    Ok(())
}

#[idempotent(
    key(stable(joined::<u8, u8>(&msg.pair.0, &9)), stable(if msg.id() > 3 { "big" } else { "small" })),
    scope = "asserted"
)]
async fn asserted(tx: &mut Tx<'_>, msg: &Msg) -> Done {
    Ok(())
}

#[idempotent(
    key = "stable(joined::<u8, u8>(&msg.pair.0, &9)), stable(format!(\"{}-\", msg.id()))",
    scope = "quoted"
)]
async fn quoted(tx: &mut Tx<'_>, msg: &Msg) -> Done {
    Ok(())
}

/// Guards are dropped before the body, which would wait for them for ever.
#[idempotent(
    key = "msg.lock.lock().unwrap().0, msg.lock.lock().unwrap().1",
    scope = "guards"
)]
async fn guards(tx: &mut Tx<'_>, msg: &Msg) -> Done {
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    msg.lock.lock().unwrap().0 = 9;
    msg.lock.lock().unwrap().0 = 6;
    Ok(())
}

#[tokio::test]
async fn keys() {
    let (mut tx, msg) = (begin().await, msg());
    delivered!(tx, "raw" => "paid", loops::r#in::r#move(&mut tx, &msg));
    let scope = concat!(module_path!(), "::loop(msg.type,final)");
    delivered!(tx, scope => "paid/true", r#loop(&mut tx, &msg, true));
    delivered!(tx, "tuples" => "1/3/2", tuples(&mut tx, &msg));
    delivered!(tx, "quoted_tuples" => "2/3", quoted_tuples(&mut tx, ((1, 2), (3, 4))));
    delivered!(tx, "calls" => "42/5/x%2Fy/x%2Fy/4", calls(&mut tx, &msg));
    delivered!(tx, "unquoted_calls" => "42/5/x%2Fy/x%2Fy/4", unquoted_calls(&mut tx, &msg));
    delivered!(
        tx,
        "wrapped" => "~/1970-01-01T00:00:01.000000000Z/0.5/2/42",
        wrapped(&mut tx, &msg)
    );
    delivered!(tx, "asserted" => "19/big", asserted(&mut tx, &msg));
    delivered!(tx, "quoted" => "19/42-", quoted(&mut tx, &msg));
    delivered!(tx, "guards" => "6/seven", guards(&mut tx, &msg));
}
