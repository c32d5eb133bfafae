//! Programs that do not compile, with what the compiler says of them; and
//! handlers of every shape, which compile and run.
//!
//! The `.stderr` files belong to one stable compiler, named in `build.rs`. On
//! another one its words differ, and the comparison is listed as ignored.

#[path = "ui/pass/mod.rs"]
mod pass;

#[test]
#[cfg_attr(
    not(has_expected_compiler),
    ignore = "the expected messages are those of rustc 1.95"
)]
fn fail() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail/**/*.rs");
}
