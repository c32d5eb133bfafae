//! The handlers of a program: a list of them, and a test that sees when one
//! loses its keys (feature `handlers`).
//!
//! Two mistakes cannot be seen where a handler is written. Two handlers with one scope swallow each
//! other's messages. A handler that is renamed or moved, or whose key is written otherwise, no longer
//! recognises the messages that it has processed, unless it says `was(…)`. Both show in the list of
//! all handlers, in a test:
//!
//! ```
//! use idempotent_runtime::handlers::{LockError, check_lock};
//!
//! #[test]
//! fn handlers_keep_their_keys() -> Result<(), LockError> {
//!     check_lock("idempotent.lock")
//! }
//! ```
//!
//! Nothing of this looks at a database, and nothing runs it but you: a program starts whatever its
//! handlers are called.
//!
//! # What is listed
//!
//! Every handler of every crate that is linked in: functions, methods, trait methods, generic ones
//! (once, also if nobody calls them), those that a macro made. A crate that is a dependency but is
//! named nowhere is not linked by Rust; `use that_crate as _;` in the test links it. In a unit test,
//! handlers under `#[cfg(test)]` are listed, too; an integration test, a file in `tests/`, has what a
//! program would have.
//!
//! A static library (`crate-type = ["staticlib"]`) that is linked by another compiler than rustc may
//! lose entries.
//!
//! # In tests only
//!
//! The list is made by a constructor for each handler, which links one entry in front of `main` and
//! can neither fail nor allocate. A program need not have it: with
//!
//! ```toml
//! [dev-dependencies]
//! idempotent-runtime = { version = "0.1", features = ["handlers"] }
//! ```
//!
//! the feature is on in tests, and `cargo build` makes the same program as without it.

#![allow(
    clippy::test_attr_in_doctest,
    reason = "a test is what the example is about"
)]

mod lock;

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use crate::handler::{Busy, Guard, Handler};
use crate::table::Table;

pub use lock::{LockError, check_lock, check_scopes};

/// Lists every handler that is linked in, sorted by scope.
///
/// # Examples
///
/// ```standalone_crate
/// # #[cfg(feature = "sqlite")] {
/// use idempotent_runtime::{handlers, idempotent};
/// use sqlx::{Sqlite, Transaction};
///
/// #[idempotent(key = "event_id, channel", scope = "notify", retain = "7 days")]
/// async fn notify(
///     tx: &mut Transaction<'_, Sqlite>,
///     event_id: i64,
///     channel: &str,
/// ) -> sqlx::Result<()> {
///     # sqlx::query("SELECT 1").execute(&mut **tx).await?;
///     // …
///     Ok(())
/// }
///
/// let all = handlers();
/// assert_eq!(all.len(), 1);
/// assert_eq!(all[0].scope(), "notify");
/// assert_eq!(all[0].key(), "event_id, channel");
/// assert!(all[0].function().ends_with("::notify"));
/// let line = all[0].to_string();
/// assert!(line.starts_with(r#"scope = "notify", key = "event_id, channel", retain = "7 days""#));
/// # }
/// ```
#[must_use]
pub fn handlers() -> Vec<&'static HandlerInfo> {
    let mut all: Vec<_> = inventory::iter::<HandlerInfo>.into_iter().collect();
    all.sort_by_key(|info| (info.scope(), info.function(), info.file(), info.line()));
    all
}

inventory::collect!(HandlerInfo);

/// A handler, as its attribute describes it.
///
/// Its `Display` is one line: the arguments that are not the default, the function, its place.
#[derive(Clone, Debug)]
pub struct HandlerInfo {
    handler: &'static Handler,
    written: Written,
}

/// What only the list knows. The macro fills it in.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Written {
    /// The name of a type that stands in the function, in a constant without a name.
    pub inside: fn() -> &'static str,
    pub file: &'static str,
    pub line: u32,
    pub key: &'static str,
    /// Empty: none; so `each`.
    pub fingerprint: &'static str,
    pub each: &'static str,
    pub replay: bool,
    /// In seconds. 0: none.
    pub redelivery: u64,
    /// Earlier scopes and keys. Empty: the same as now.
    pub was: &'static [(&'static str, &'static str)],
}

impl Written {
    pub const DEFAULT: Self = Self {
        inside: || "",
        file: "",
        line: 0,
        key: "",
        fingerprint: "",
        each: "",
        replay: false,
        redelivery: 0,
        was: &[],
    };
}

impl HandlerInfo {
    #[doc(hidden)]
    #[must_use]
    pub const fn new(handler: &'static Handler, written: Written) -> Self {
        Self { handler, written }
    }

    /// Returns the namespace of its keys.
    #[must_use]
    pub const fn scope(&self) -> &'static str {
        self.handler.scope
    }

    /// Returns the parts of its key, in order, as they are written but for blanks: `event.id,
    /// channel`.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        self.written.key
    }

    /// Returns the function's path, with its type if it is a method: `shop::Stock::take`. It is for
    /// people: Rust does not promise its form.
    #[must_use]
    pub fn function(&self) -> &'static str {
        let inside = (self.written.inside)();
        let mut path = inside.strip_suffix("::_::Here").unwrap_or(inside);
        while let Some(outer) = path.strip_suffix("::{{closure}}") {
            path = outer;
        }
        path
    }

    /// Returns the source file, as the compiler was given it.
    #[must_use]
    pub const fn file(&self) -> &'static str {
        self.written.file
    }

    /// Returns the line of the attribute, or of the macro that made it.
    #[must_use]
    pub const fn line(&self) -> u32 {
        self.written.line
    }

    /// Returns the table that holds its keys.
    #[must_use]
    pub const fn table(&self) -> &'static Table {
        &self.handler.table
    }

    /// Returns `verify` or `savepoint`.
    #[must_use]
    pub const fn guard(&self) -> &'static str {
        match self.handler.guard {
            Guard::Verify => "verify",
            Guard::Savepoint => "savepoint",
        }
    }

    /// Returns `wait` or `fail`.
    #[must_use]
    pub const fn busy(&self) -> &'static str {
        match self.handler.busy {
            Busy::Wait => "wait",
            Busy::Fail => "fail",
        }
    }

    /// Returns how long its keys are kept, if not until they are pruned by hand.
    #[must_use]
    pub fn retain(&self) -> Option<Duration> {
        self.handler.retain.map(Duration::from_secs)
    }

    /// Returns how late the broker can redeliver, if that is written.
    #[must_use]
    pub fn redelivery(&self) -> Option<Duration> {
        let seconds = self.written.redelivery;
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// Says whether duplicates get the stored value.
    #[must_use]
    pub const fn replay(&self) -> bool {
        self.written.replay
    }

    /// Returns the parts that must be the same when a key comes again.
    #[must_use]
    pub const fn fingerprint(&self) -> Option<&'static str> {
        some(self.written.fingerprint)
    }

    /// Returns `event in events` of a handler of batches.
    #[must_use]
    pub const fn each(&self) -> Option<&'static str> {
        some(self.written.each)
    }

    /// Returns the earlier scopes and keys of the same messages, in the order of the attribute.
    pub fn was(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.written.was.iter().map(|(scope, key)| {
            let scope = some(scope).unwrap_or(self.scope());
            (scope, some(key).unwrap_or(self.key()))
        })
    }

    /// `shop::notify, src/lib.rs:12`
    fn place(&self) -> String {
        format!("{}, {}:{}", self.function(), self.file(), self.line())
    }
}

impl Display for HandlerInfo {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "scope = {:?}, key = {:?}", self.scope(), self.key())?;
        if let Some(each) = self.each() {
            write!(f, ", each = {each:?}")?;
        }
        for (scope, key) in self.was() {
            write!(f, ", was(scope = {scope:?}, key = {key:?})")?;
        }
        if self.replay() {
            f.write_str(", replay")?;
        }
        if let Some(fingerprint) = self.fingerprint() {
            write!(f, ", fingerprint = {fingerprint:?}")?;
        }
        let periods = [("retain", self.retain()), ("redelivery", self.redelivery())];
        for (name, period) in periods {
            if let Some((number, unit)) = period.map(in_units) {
                write!(f, ", {name} = \"{number} {unit}\"")?;
            }
        }
        if self.handler.busy != Busy::Wait {
            write!(f, ", busy = {:?}", self.busy())?;
        }
        if self.handler.guard != Guard::Verify {
            write!(f, ", guard = {:?}", self.guard())?;
        }
        if *self.table() != Table::default() {
            write!(f, ", table = \"{}\"", self.table())?;
        }
        write!(f, " on {}", self.place())
    }
}

const fn some(text: &'static str) -> Option<&'static str> {
    if text.is_empty() { None } else { Some(text) }
}

/// In the largest unit that leaves no rest.
const fn in_units(period: Duration) -> (u64, &'static str) {
    let seconds = period.as_secs();
    match seconds {
        _ if seconds.is_multiple_of(86_400) => (seconds / 86_400, "days"),
        _ if seconds.is_multiple_of(3_600) => (seconds / 3_600, "hours"),
        _ if seconds.is_multiple_of(60) => (seconds / 60, "minutes"),
        _ => (seconds, "seconds"),
    }
}

/// Enters a handler in the list, from within its function.
#[doc(hidden)]
#[macro_export]
macro_rules! __register {
    ($handler:ident $(, $name:ident = $value:expr)+) => {
        const _: () = {
            struct Here;
            $crate::__private::inventory::submit! {
                $crate::handlers::HandlerInfo::new(
                    &$handler,
                    $crate::__private::Written {
                        inside: ::core::any::type_name::<Here>,
                        file: ::core::file!(),
                        line: ::core::line!(),
                        $($name: $value,)+
                        ..$crate::__private::Written::DEFAULT
                    },
                )
            }
        };
    };
}
