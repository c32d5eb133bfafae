//! What the attribute knows of a handler before any message arrives.

use std::any::type_name;
use std::pin::pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};

use crate::error::{Cause, Error};
use crate::key::{Key, KeyBuilder};
use crate::table::Table;

/// A handler, as its attribute describes it.
#[derive(Debug)]
pub struct Handler {
    pub(crate) scope: &'static str,
    pub(crate) table: Table,
    pub(crate) guard: Guard,
    /// Seconds for which its keys are kept.
    pub(crate) retain: Option<u64>,
    pub(crate) busy: Busy,
    /// The handler's path, if its default scope does not begin with it.
    stray: OnceLock<&'static str>,
}

/// What a second delivery does while the first is open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Busy {
    /// Waits for the first, as the unique index makes it.
    Wait,
    /// Fails at once, and may be tried again.
    Fail,
}

/// What the attribute's arguments say, beside the scope.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// `guard = "…"`
    pub guard: Guard,
    /// `table = "…"`
    pub table: Option<&'static str>,
    /// `retain = "…"`, in seconds.
    pub retain: Option<u64>,
    /// `busy = "…"`
    pub busy: Busy,
}

impl Options {
    /// What they are where nothing is said.
    pub const DEFAULT: Self = Self {
        guard: Guard::Verify,
        table: None,
        retain: None,
        busy: Busy::Wait,
    };
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
    /// A handler whose scope was written by hand. The attribute has looked at
    /// both names, so that the compiler need not do it again for each handler.
    #[must_use]
    pub const fn new(scope: &'static str, options: Options) -> Self {
        Self {
            scope,
            table: match options.table {
                Some(name) => Table::literal(name),
                None => Table::literal("processed_messages"),
            },
            guard: options.guard,
            retain: options.retain,
            busy: options.busy,
            stray: OnceLock::new(),
        }
    }

    /// A handler whose scope is made of its path and its key.
    ///
    /// # Panics
    ///
    /// At compile time, if that does not fit.
    #[must_use]
    pub const fn with_default_scope(scope: &'static str, options: Options) -> Self {
        assert!(
            is_scope(scope),
            "the default scope of this idempotent handler, its path and key, is not 1 to 128 of \
             `A-Za-z0-9_.:(),-`\nhelp: write `scope = \"…\"`"
        );
        Self::new(scope, options)
    }

    /// Refuses a default scope that another handler may have too.
    pub(crate) fn check_scope(&self) -> Result<(), Error> {
        match self.stray.get() {
            None => Ok(()),
            Some(function) => Err(Error::new(Cause::SharedScope {
                scope: self.scope,
                function,
            })),
        }
    }
}

/// Checks that a handler with a default scope is the function that the scope
/// names: that of its module, and no other. The attribute cannot see that.
/// Associated functions, and functions inside functions, may share module, name
/// and key.
///
/// `closure` stands in the handler's body: the name of its type begins with the
/// handler's own path.
pub fn located<F>(handler: &'static Handler, _closure: &F) -> &'static Handler {
    let function = function_of::<F>();
    let path = handler.scope.split('(').next().unwrap_or_default();
    if names_are_known() && !is_same_path(function, path) {
        // All instances of a generic handler share `handler`; and none of them is
        // a function of its module.
        handler.stray.get_or_init(|| function);
    }
    handler
}

/// The path of the function that a closure stands in.
fn function_of<F>() -> &'static str {
    let mut path = type_name::<F>();
    while let Some(outer) = path.strip_suffix("::{{closure}}") {
        path = outer;
    }
    path
}

/// `a::r#loop` and `a::loop`
fn is_same_path(one: &str, other: &str) -> bool {
    let names = |path| str::split(path, "::").map(|name| name.trim_start_matches("r#"));
    names(one).eq(names(other))
}

/// Rust promises nothing of a type's name. Where it is not what we know, of a
/// function that is known, it tells nothing of others.
fn names_are_known() -> bool {
    static ARE_KNOWN: OnceLock<bool> = OnceLock::new();

    *ARE_KNOWN.get_or_init(|| {
        let path = pin!(canary()).poll(&mut Context::from_waker(Waker::noop()));
        path == Poll::Ready(concat!(module_path!(), "::canary"))
    })
}

#[expect(clippy::unused_async, reason = "it is a handler, as far as names go")]
async fn canary() -> &'static str {
    fn path<F>(_: &F) -> &'static str {
        function_of::<F>()
    }
    path(&|| {})
}

/// The alphabet of a scope leaves nothing to quote in a statement.
pub(crate) const fn is_scope(text: &str) -> bool {
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

/// Without the list. The attribute asks for no entry then, save in a build
/// script: that has the macros of the program, and maybe another runtime.
#[cfg(not(feature = "handlers"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __register {
    ($($entry:tt)*) => {};
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

#[cfg(test)]
mod tests {
    use super::{Handler, Options, is_same_path, is_scope, located, names_are_known};

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

    fn free() -> &'static Handler {
        static HANDLER: Handler =
            Handler::with_default_scope(concat!(module_path!(), "::free(id)"), Options::DEFAULT);
        located(&HANDLER, &|| {})
    }

    struct Generic<T>(T);

    impl<T> Generic<T> {
        fn associated() -> &'static Handler {
            static HANDLER: Handler = Handler::with_default_scope(
                concat!(module_path!(), "::associated(id)"),
                Options::DEFAULT,
            );
            located(&HANDLER, &|| {})
        }
    }

    #[test]
    fn the_names_of_types_are_as_expected() {
        assert!(names_are_known());
    }

    #[test]
    fn a_free_function_has_its_scope_for_itself() {
        assert!(free().check_scope().is_ok());
    }

    #[test]
    fn an_associated_function_does_not_even_if_it_is_the_first() {
        let error = Generic::<u8>::associated().check_scope().unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("Generic<u8>::associated` is not a free function"),
            "{text}"
        );
        assert!(text.contains("write `scope = "), "{text}");
        assert!(Generic::<u16>::associated().check_scope().is_err());
    }

    #[test]
    fn a_function_in_a_function_does_not_either() {
        fn free() -> &'static Handler {
            static HANDLER: Handler = Handler::with_default_scope(
                concat!(module_path!(), "::free(id)"),
                Options::DEFAULT,
            );
            located(&HANDLER, &|| {})
        }
        assert!(free().check_scope().is_err());
    }

    #[test]
    fn raw_names_are_names() {
        assert!(is_same_path("a::r#in::r#loop", "a::in::loop"));
        assert!(!is_same_path("a::in::First::loop", "a::in::loop"));
    }
}
