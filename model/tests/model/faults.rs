//! The checker finds each classic fault, by the shortest way.

#![allow(
    clippy::needless_raw_string_hashes,
    reason = "expect-test writes them so"
)]

use expect_test::{Expect, expect};
use idempotent_model::{Fault, Promise};

use crate::{lines, shortest};

#[track_caller]
fn breaks(fault: Fault, promise: Promise, way: &Expect) {
    let events = shortest(fault, promise).unwrap_or_else(|| panic!("{fault:?} is not found"));
    let lines = lines(&events);
    println!("{fault:?}, against {}:\n{lines}", promise.name());
    way.assert_eq(&lines);
}

#[test]
fn a_record_that_is_committed_before_the_effect_loses_the_message() {
    breaks(
        Fault::RecordFirst,
        Promise::Kept,
        &expect![[r#"
        1   A gets 7/EMAIL (old release)
        2   A claims `alert 7/EMAIL`
        3   B gets 7/EMAIL (old release)
        4   A commits, and the answer is lost
        5   B finds `alert 7/EMAIL`: duplicate
        6   B acknowledges
    "#]],
    );
}

#[test]
fn an_effect_that_is_committed_before_the_record_comes_twice() {
    breaks(
        Fault::EffectFirst,
        Promise::Once,
        &expect![[r#"
        1   A gets 7/EMAIL (old release)
        2   A sees no row
        3   A runs the handler
        4   A returns: processed
        5   A commits
        6   B gets 7/EMAIL (old release)
        7   B sees no row
        8   B runs the handler
        9   B returns: processed
        10  B commits
    "#]],
    );
}

#[test]
fn an_acknowledgement_before_the_commit_loses_the_message() {
    breaks(
        Fault::AcknowledgeFirst,
        Promise::Kept,
        &expect![[r#"
        1   A gets 7/EMAIL (old release)
        2   A claims `alert 7/EMAIL`
        3   A runs the handler
        4   A returns: processed
        5   A acknowledges
        6   A crashes
    "#]],
    );
}

#[test]
fn an_acknowledgement_in_doubt_loses_the_message() {
    breaks(
        Fault::AcknowledgeInDoubt,
        Promise::Kept,
        &expect![[r#"
        1   A gets 7/EMAIL (old release)
        2   A claims `alert 7/EMAIL`
        3   A runs the handler
        4   A returns: processed
        5   A is cut off before COMMIT arrives
        6   A acknowledges
    "#]],
    );
}

#[test]
fn a_row_that_is_pruned_too_early_lets_the_effect_come_twice() {
    breaks(
        Fault::PruneEarly,
        Promise::Once,
        &expect![[r#"
        1   A gets 7/EMAIL (old release)
        2   A claims `alert 7/EMAIL`
        3   A runs the handler
        4   A returns: processed
        5   A commits
        6   B gets 7/EMAIL (old release)
        7   time passes
        8   the pruner deletes `alert 7/EMAIL`
        9   B claims `alert 7/EMAIL`
        10  B runs the handler
        11  B returns: processed
        12  B commits
    "#]],
    );
}

#[test]
fn a_copy_that_is_held_for_too_long_lets_the_effect_come_twice() {
    breaks(
        Fault::HoldLong,
        Promise::Once,
        &expect![[r#"
        1   A gets 7/EMAIL (old release)
        2   A claims `alert 7/EMAIL`
        3   A runs the handler
        4   A returns: processed
        5   A commits
        6   A acknowledges
        7   A gets 7/EMAIL (old release)
        8   time passes
        9   time passes
        10  the pruner deletes `alert 7/EMAIL`
        11  A claims `alert 7/EMAIL`
        12  A runs the handler
        13  A returns: processed
        14  A commits
    "#]],
    );
}

#[test]
fn a_coarse_key_loses_the_second_channel() {
    breaks(
        Fault::CoarseKey,
        Promise::Kept,
        &expect![[r#"
        1   A gets 7/EMAIL (old release)
        2   B gets 7/PUSH (old release)
        3   A claims `alert 7`
        4   A runs the handler
        5   A returns: processed
        6   A commits
        7   B finds `alert 7`: duplicate
        8   B acknowledges
    "#]],
    );
}

#[test]
fn a_rename_without_was_lets_the_effect_come_twice() {
    breaks(
        Fault::NoWas,
        Promise::Once,
        &expect![[r#"
        1   A gets 7/EMAIL (old release)
        2   A claims `alert 7/EMAIL`
        3   A runs the handler
        4   A returns: processed
        5   A commits
        6   B gets 7/EMAIL (new release)
        7   B claims `notify 7/EMAIL`
        8   B runs the handler
        9   B returns: processed
        10  B commits
    "#]],
    );
}

#[test]
fn names_that_are_claimed_in_any_order_end_in_a_deadlock() {
    breaks(
        Fault::Unsorted,
        Promise::Ends,
        &expect![[r#"
        1   A gets 7/EMAIL (new release)
        2   A claims `alert 7/EMAIL`
        3   B gets 7/EMAIL (new release)
        4   B claims `notify 7/EMAIL`
        5   A waits for `notify 7/EMAIL`
        6   B waits for `alert 7/EMAIL`
    "#]],
    );
}

#[test]
fn a_swallowed_error_loses_the_message() {
    breaks(
        Fault::NoProof,
        Promise::Kept,
        &expect![[r#"
        1   A gets 7/EMAIL (old release)
        2   A claims `alert 7/EMAIL`
        3   A runs the handler, which swallows a database error
        4   A returns: processed
        5   A commits
        6   A acknowledges
    "#]],
    );
}

#[test]
fn a_look_before_the_insert_lets_the_effect_come_twice() {
    breaks(
        Fault::LookThenInsert,
        Promise::Once,
        &expect![[r#"
        1   A gets 7/EMAIL (old release)
        2   A sees no row
        3   A claims `alert 7/EMAIL`
        4   A runs the handler
        5   A returns: processed
        6   B gets 7/EMAIL (old release)
        7   B sees no row
        8   A commits
        9   B claims `alert 7/EMAIL`
        10  B runs the handler
        11  B returns: processed
        12  B commits
    "#]],
    );
}

#[test]
fn one_that_waited_for_a_claim_that_was_rolled_back_is_no_duplicate() {
    breaks(
        Fault::LoserIsDuplicate,
        Promise::Kept,
        &expect![[r#"
        1   A gets 7/EMAIL (old release)
        2   A claims `alert 7/EMAIL`
        3   B gets 7/EMAIL (old release)
        4   B waits for `alert 7/EMAIL`
        5   A crashes
        6   B finds `alert 7/EMAIL`: duplicate
        7   B acknowledges
    "#]],
    );
}

#[test]
fn a_claim_that_is_open_makes_no_duplicate() {
    breaks(
        Fault::OpenIsDuplicate,
        Promise::Ackable,
        &expect![[r#"
        1   A gets 7/EMAIL (old release)
        2   A claims `alert 7/EMAIL`
        3   B gets 7/EMAIL (old release)
        4   B finds `alert 7/EMAIL`: duplicate
    "#]],
    );
}
