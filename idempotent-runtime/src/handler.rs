//! What the attribute knows of a handler before any message arrives, and the
//! handler's return type.

#![allow(
    clippy::missing_errors_doc,
    reason = "the functions that return a result are hidden"
)]

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::error::{Cause, Error};
use crate::key::{Key, KeyBuilder};
use crate::outcome::Outcome;
use crate::table::Table;

/// A handler, as its attribute describes it.
#[derive(Debug)]
pub struct Handler {
    pub(crate) scope: &'static str,
    pub(crate) table: Table,
    pub(crate) guard: Guard,
    /// Where the attribute stands, if the scope is the default one.
    site: Option<&'static str>,
    registered: OnceLock<Option<&'static str>>,
}

/// What proves that the claim's transaction is still alive after the body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Guard {
    /// One statement after the body.
    Verify,
    /// A savepoint around claim and body.
    Savepoint,
}

impl Handler {
    /// A handler whose scope was written by hand.
    ///
    /// # Panics
    ///
    /// At compile time, on a scope or a table that the attribute would refuse.
    #[must_use]
    pub const fn new(scope: &'static str, guard: Guard, table: &'static str) -> Self {
        assert!(
            is_scope(scope),
            "the scope of an idempotent handler is 1 to 128 of `A-Za-z0-9_.:(),-`\nhelp: write `scope = \"…\"`"
        );
        Self {
            scope,
            table: Table::literal(table),
            guard,
            site: None,
            registered: OnceLock::new(),
        }
    }

    /// A handler whose scope is made of its path and its key.
    ///
    /// # Panics
    ///
    /// At compile time, if that does not fit.
    #[must_use]
    pub const fn with_default_scope(
        scope: &'static str,
        site: &'static str,
        guard: Guard,
        table: &'static str,
    ) -> Self {
        assert!(
            is_scope(scope),
            "the default scope of this idempotent handler, its path and key, is not 1 to 128 of \
             `A-Za-z0-9_.:(),-`\nhelp: write `scope = \"…\"`"
        );
        Self {
            scope,
            table: Table::literal(table),
            guard,
            site: Some(site),
            registered: OnceLock::new(),
        }
    }

    /// Refuses a default scope that another handler of this process has too.
    /// The attribute cannot see that: associated functions of two types, or
    /// functions inside functions, may share path, name and key.
    pub(crate) fn check_scope(&self) -> Result<(), Error> {
        let Some(site) = self.site else {
            return Ok(());
        };
        match self.registered.get_or_init(|| register(self.scope, site)) {
            None => Ok(()),
            Some(first) => Err(Error::new(Cause::SharedScope {
                scope: self.scope,
                first,
                second: site,
            })),
        }
    }
}

/// Returns the site of the handler that has the scope already, if there is one.
fn register(scope: &'static str, site: &'static str) -> Option<&'static str> {
    static SITES: Mutex<BTreeMap<&str, &str>> = Mutex::new(BTreeMap::new());

    let first = *SITES
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(scope)
        .or_insert(site);
    (first != site).then_some(first)
}

/// The alphabet of a scope leaves nothing to quote in a statement.
const fn is_scope(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut position = 0;
    while position < bytes.len() {
        if !matches!(
            bytes[position],
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b':' | b'(' | b')' | b',' | b'-'
        ) {
            return false;
        }
        position += 1;
    }
    !bytes.is_empty() && bytes.len() <= 128
}

/// Starts the key of a message.
#[must_use]
pub fn new_key(handler: &'static Handler) -> KeyBuilder {
    KeyBuilder::new(handler.scope)
}

/// Ends it.
#[must_use]
pub fn finish_key(key: KeyBuilder) -> Key {
    key.finish()
}

/// The `Result` that a handler's body returns.
#[diagnostic::on_unimplemented(
    message = "an idempotent handler returns a `Result`",
    label = "`{Self}` is not a `Result`",
    note = "return `Result<T, E>`: the caller sees `Result<Outcome<T>, E>`"
)]
pub trait HandlerResult {
    /// The value of a handler that succeeds.
    type Value;
    /// The error of a handler that fails.
    type Error;
    /// What the caller sees.
    type Outcome;

    /// The result, in the one shape the frame works with.
    fn into_result(self) -> Result<Self::Value, Self::Error>;
    /// Back to the shape the caller sees.
    fn from_result(result: Result<Outcome<Self::Value>, Self::Error>) -> Self::Outcome;
}

impl<T, E> HandlerResult for Result<T, E> {
    type Value = T;
    type Error = E;
    type Outcome = Result<Outcome<T>, E>;

    fn into_result(self) -> Self {
        self
    }

    fn from_result(result: Result<Outcome<T>, E>) -> Self::Outcome {
        result
    }
}

/// An error type that can carry ours.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot carry the errors of `#[idempotent]`",
    label = "the handler's error type",
    note = "implement `From<idempotent_runtime::Error>` for `{Self}`, for instance with `#[from]` of thiserror"
)]
pub trait HandlerError {
    /// Wraps our error.
    fn from_idempotent(error: Error) -> Self;
}

#[diagnostic::do_not_recommend]
impl<E: From<Error>> HandlerError for E {
    fn from_idempotent(error: Error) -> Self {
        error.into()
    }
}

/// How a handler that returns `R` is told of our errors.
pub struct Frame<R: HandlerResult> {
    convert: fn(Error) -> R::Error,
}

impl<R: HandlerResult> Clone for Frame<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: HandlerResult> Copy for Frame<R> {}

impl<R: HandlerResult> Frame<R> {
    pub(crate) fn fail(self, error: Error) -> R::Outcome {
        R::from_result(Err((self.convert)(error)))
    }
}

/// The one place that asks the handler's return type for its traits, so that a
/// mistake there is one error.
#[must_use]
pub fn frame<R>() -> Frame<R>
where
    R: HandlerResult,
    R::Error: HandlerError,
{
    Frame {
        convert: HandlerError::from_idempotent,
    }
}

/// Stands in an arm that never runs, so that the body's type is known from its
/// first line on.
///
/// # Panics
///
/// Always.
#[must_use]
pub fn hint<R>() -> R {
    unreachable!("never called: it tells the compiler a type")
}

/// The frame of a handler whose attribute has mistakes: the program does not
/// compile, and callers see the type that they will see once it does.
pub fn unclaimed<R: HandlerResult>(result: R) -> R::Outcome {
    R::from_result(result.into_result().map(Outcome::Processed))
}

#[cfg(test)]
mod tests {
    use super::{is_scope, register};

    #[test]
    fn scopes() {
        for scope in [
            "a",
            "shop::notify(event.id,channel)",
            "A-1.b_c:",
            &"x".repeat(128),
        ] {
            assert!(is_scope(scope), "{scope}");
        }
        for scope in ["", "a b", "a'b", "a\\b", "ä", "a#b", &"x".repeat(129)] {
            assert!(!is_scope(scope), "{scope}");
        }
    }

    #[test]
    fn a_default_scope_belongs_to_the_first_handler_that_used_it() {
        assert_eq!(register("a::shared(id)", "src/a.rs:1:1"), None);
        assert_eq!(register("a::shared(id)", "src/a.rs:1:1"), None);
        assert_eq!(
            register("a::shared(id)", "src/a.rs:9:1"),
            Some("src/a.rs:1:1")
        );
    }
}
