//! The HTTP services, driven by a real client.

/// A `#[test]` of each, on a database of its own.
macro_rules! on_postgres {
    ($($test:ident),+ $(,)?) => {
        mod postgres {
            $(#[test]
            #[cfg_attr(not(has_postgres), ignore = "needs Postgres: run `cargo xtask test`")]
            fn $test() {
                crate::running::in_fresh_database(super::$test);
            })+
        }
    };
}

mod payments;
mod server;
mod webhooks;
