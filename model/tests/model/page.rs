//! `docs/model.md` says what the checker finds. `UPDATE_EXPECT=1` writes it anew.

use std::fmt::Write;

use expect_test::expect_file;
use idempotent_model::{Fault, Promise};

use crate::bounds::SHORT;
use crate::protocol::hold;
use crate::{broken, lines, shortest};

#[test]
fn the_page_says_what_the_checker_finds() {
    let page = include_str!("../../../docs/model.md");
    let page = splice(page, "models", &models());
    let page = splice(&page, "faults", &faults());
    let page = splice(&page, "example", &example());
    expect_file!["../../../docs/model.md"].assert_eq(&page);
}

fn models() -> String {
    let mut table = String::from(
        "| model | consumers | messages | releases | mishaps | spare copies | ticks | states | longest way |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for scene in &SHORT {
        let (bounds, size) = (scene.bounds, hold(scene));
        let counts = [
            bounds.workers,
            bounds.messages,
            bounds.releases,
            bounds.mishaps.into(),
            bounds.spares.into(),
            bounds.ticks.into(),
            size.states,
            size.depth,
        ];
        table.push_str(&row(scene.name, counts.map(|count| count.to_string())));
    }
    table
}

fn faults() -> String {
    let names = Promise::ALL.map(|promise| promise.name().to_owned());
    let mut table = row("fault", names) + &row("---", Promise::ALL.map(|_| "---".to_owned()));
    for (fault, words) in FAULTS {
        let mut lengths = Promise::ALL.map(|_| "–".to_owned());
        for promise in broken(fault) {
            let events = shortest(fault, promise).unwrap_or_default();
            lengths[promise as usize] = events.len().to_string();
        }
        table.push_str(&row(words, lengths));
    }
    table
}

fn example() -> String {
    let events = shortest(Fault::LoserIsDuplicate, Promise::Kept).unwrap_or_default();
    format!("```text\n{}```\n", lines(&events))
}

fn row<const N: usize>(first: &str, cells: [String; N]) -> String {
    let mut line = format!("| {first} |");
    for cell in cells {
        write!(line, " {cell} |").expect("a string takes all");
    }
    line + "\n"
}

/// Replaces what stands between `<!-- name -->` and `<!-- end -->`.
fn splice(page: &str, name: &str, text: &str) -> String {
    let begin = format!("<!-- {name} -->\n");
    let (before, rest) = page.split_once(&begin).expect("the page has the mark");
    let (_, after) = rest
        .split_once("<!-- end -->")
        .expect("the mark has an end");
    format!("{before}{begin}{text}<!-- end -->{after}")
}

const FAULTS: [(Fault, &str); 13] = [
    (
        Fault::RecordFirst,
        "the record is committed before the effect",
    ),
    (
        Fault::EffectFirst,
        "the effect is committed before the record",
    ),
    (Fault::AcknowledgeFirst, "acknowledged before the commit"),
    (
        Fault::AcknowledgeInDoubt,
        "acknowledged though the answer to COMMIT is lost",
    ),
    (Fault::PruneEarly, "pruned while a copy can still come"),
    (
        Fault::HoldLong,
        "a copy is held for longer than `redelivery`",
    ),
    (
        Fault::CoarseKey,
        "a coarse key: the event's id without the channel",
    ),
    (Fault::NoWas, "a rename without `was`"),
    (Fault::Unsorted, "the two names are claimed in any order"),
    (Fault::NoProof, "a swallowed database error, and no proof"),
    (
        Fault::LookThenInsert,
        "a look, then an insert, and no unique constraint",
    ),
    (
        Fault::LoserIsDuplicate,
        "who has waited is a duplicate, also after a rollback",
    ),
    (
        Fault::OpenIsDuplicate,
        "a claim that is open makes duplicates",
    ),
];
