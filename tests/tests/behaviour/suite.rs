//! A test is written once, generic over the database and, where it matters, the
//! guard; these macros make a `#[test]` of each combination.

macro_rules! on_every_database {
    ($($test:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test] fn $test() {
                idempotent_tests::in_fresh_database::<sqlx::Sqlite>(super::$test);
            })+
        }
        on_servers!($($test),+);
    };
}

macro_rules! on_servers {
    ($($test:ident),+ $(,)?) => {
        on_postgres!($($test),+);
        on_mariadb!($($test),+);
    };
}

macro_rules! on_postgres {
    ($($test:ident),+ $(,)?) => {
        mod postgres {
            $(#[test]
            #[cfg_attr(not(has_postgres), ignore = "needs Postgres: run `cargo xtask test`")]
            fn $test() {
                idempotent_tests::in_fresh_database::<sqlx::Postgres>(super::$test);
            })+
        }
    };
}

macro_rules! on_mariadb {
    ($($test:ident),+ $(,)?) => {
        mod mariadb {
            $(#[test]
            #[cfg_attr(not(has_mariadb), ignore = "needs MariaDB: run `cargo xtask test`")]
            fn $test() {
                idempotent_tests::in_fresh_database::<sqlx::MySql>(super::$test);
            })+
        }
    };
}

/// `verify: both, savepoint: both` with tests that are generic over the guard
/// too.
macro_rules! with_every_guard {
    ($($test:ident),+ $(,)?) => {
        mod verify {
            on_every_database_under!(idempotent_tests::Verify, $($test),+);
        }
        mod savepoint {
            on_every_database_under!(idempotent_tests::Savepoint, $($test),+);
        }
    };
}

/// For tests that are generic over a guard, or a delivery, too.
macro_rules! on_every_database_under {
    ($guard:ty, $($test:ident),+ $(,)?) => {
        on_sqlite_under!($guard, $($test),+);
        on_servers_under!($guard, $($test),+);
    };
}

macro_rules! on_servers_under {
    ($guard:ty, $($test:ident),+ $(,)?) => {
        on_postgres_under!($guard, $($test),+);
        on_mariadb_under!($guard, $($test),+);
    };
}

macro_rules! on_sqlite_under {
    ($guard:ty, $($test:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test] fn $test() {
                idempotent_tests::in_fresh_database::<sqlx::Sqlite>(super::super::$test::<_, $guard>);
            })+
        }
    };
}

macro_rules! on_postgres_under {
    ($guard:ty, $($test:ident),+ $(,)?) => {
        mod postgres {
            $(#[test]
            #[cfg_attr(not(has_postgres), ignore = "needs Postgres: run `cargo xtask test`")]
            fn $test() {
                idempotent_tests::in_fresh_database::<sqlx::Postgres>(super::super::$test::<_, $guard>);
            })+
        }
    };
}

macro_rules! on_mariadb_under {
    ($guard:ty, $($test:ident),+ $(,)?) => {
        mod mariadb {
            $(#[test]
            #[cfg_attr(not(has_mariadb), ignore = "needs MariaDB: run `cargo xtask test`")]
            fn $test() {
                idempotent_tests::in_fresh_database::<sqlx::MySql>(super::super::$test::<_, $guard>);
            })+
        }
    };
}

/// `with_every_guard!` on one database.
macro_rules! with_every_guard_on_postgres {
    ($($test:ident),+ $(,)?) => {
        mod postgres {
            mod verify {
                $(#[test]
                #[cfg_attr(not(has_postgres), ignore = "needs Postgres: run `cargo xtask test`")]
                fn $test() {
                    idempotent_tests::in_fresh_database::<sqlx::Postgres>(super::super::$test::<idempotent_tests::Verify>);
                })+
            }
            mod savepoint {
                $(#[test]
                #[cfg_attr(not(has_postgres), ignore = "needs Postgres: run `cargo xtask test`")]
                fn $test() {
                    idempotent_tests::in_fresh_database::<sqlx::Postgres>(super::super::$test::<idempotent_tests::Savepoint>);
                })+
            }
        }
    };
}

macro_rules! with_every_guard_on_mariadb {
    ($($test:ident),+ $(,)?) => {
        mod mariadb {
            mod verify {
                $(#[test]
                #[cfg_attr(not(has_mariadb), ignore = "needs MariaDB: run `cargo xtask test`")]
                fn $test() {
                    idempotent_tests::in_fresh_database::<sqlx::MySql>(super::super::$test::<idempotent_tests::Verify>);
                })+
            }
            mod savepoint {
                $(#[test]
                #[cfg_attr(not(has_mariadb), ignore = "needs MariaDB: run `cargo xtask test`")]
                fn $test() {
                    idempotent_tests::in_fresh_database::<sqlx::MySql>(super::super::$test::<idempotent_tests::Savepoint>);
                })+
            }
        }
    };
}
