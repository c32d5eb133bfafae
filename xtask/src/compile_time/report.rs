//! The tables.

use crate::compile_time::expansion::Expansion;
use crate::compile_time::figures::Spread;
use crate::compile_time::passes::Passes;
use crate::compile_time::project::Cache;
use crate::compile_time::rounds::{Round, extra, ratio};
use crate::compile_time::sources::{HANDLERS, Variant};

const SPREAD: [&str; 3] = ["median", "lowest", "highest"];

pub(super) fn title(compiler: &str, rounds: u32) -> String {
    format!(
        "`cargo check` of {HANDLERS} handlers in one crate, {rounds} rounds; {}\n\
         Ratios and differences are of two checks in one round.\n",
        compiler.trim()
    )
}

/// Seconds, ratios, and milliseconds for each handler.
pub(super) fn times(cache: Cache, rounds: &[Round]) -> String {
    let title = match cache {
        Cache::Off => "Without the incremental cache, as in CI and at the first build",
        Cache::On => "With the incremental cache, one literal in one handler changed",
    };
    let of = |variant| Spread::of(rounds.iter().map(|round: &Round| round.of(variant)));
    let mut seconds: Vec<_> = Variant::ALL
        .map(|variant| row(variant.name(), of(variant)))
        .into();
    let idle = Spread::of(rounds.iter().map(|round| round.idle));
    seconds.push(row("nothing changed", idle));
    let ratios = [
        (Variant::Idempotent, Variant::ByHand),
        (Variant::Idempotent, Variant::Plain),
        (Variant::Instrument, Variant::Plain),
    ]
    .map(|(one, other)| {
        let name = format!("{} / {}", one.name(), other.name());
        row(&name, ratio(rounds, one, other))
    });
    let extras = [Variant::Idempotent, Variant::Instrument, Variant::ByHand].map(|variant| {
        let name = format!("({} - plain) / {HANDLERS}", variant.name());
        row(&name, extra(rounds, variant))
    });
    let head = |name| [&[name], &SPREAD[..]].concat();
    [
        format!("{title}\n"),
        table(&head("seconds"), &seconds),
        table(&head("ratio"), &ratios),
        table(&head("ms for each handler"), &extras),
    ]
    .join("\n")
}

/// What one handler adds to the plain one.
pub(super) fn expansions(expansions: &[Expansion; 4]) -> String {
    let [plain, ..] = expansions;
    let handlers = HANDLERS as usize;
    let rows: Vec<_> = Variant::ALL
        .iter()
        .zip(expansions)
        .skip(1)
        .map(|(variant, expansion)| {
            let tokens = expansion.tokens.saturating_sub(plain.tokens) / handlers;
            let bytes = expansion.bytes.saturating_sub(plain.bytes) / handlers;
            [
                variant.name().to_owned(),
                tokens.to_string(),
                bytes.to_string(),
            ]
        })
        .collect();
    let title = format!(
        "What the expansion of one handler adds to the plain one, which has {} tokens, {} bytes\n\
         (the expanded crates as rustc prints them, divided by {HANDLERS}; a token is a word, a \
         number, a string or a single sign)\n",
        plain.tokens / handlers,
        plain.bytes / handlers
    );
    [
        title,
        table(&["for each handler", "tokens", "bytes"], &rows),
    ]
    .join("\n")
}

/// The share of macro expansion.
pub(super) fn passes(passes: &[Option<Passes>; 4]) -> String {
    let rows: Option<Vec<_>> = Variant::ALL
        .iter()
        .zip(passes)
        .map(|(variant, passes)| {
            let Passes { expansion, total } = (*passes)?;
            let share = 100.0 * expansion / total;
            let figures = [
                format!("{expansion:.3}"),
                format!("{total:.3}"),
                format!("{share:.0} %"),
            ];
            let [expansion, total, share] = figures;
            Some([variant.name().to_owned(), expansion, total, share])
        })
        .collect();
    let Some(rows) = rows else {
        return "-Ztime-passes of this compiler has no `macro_expand_crate` or no `total`.\n"
            .into();
    };
    let head = ["seconds, one run", "macro_expand_crate", "total", "share"];
    let title = "Macro expansion, by -Ztime-passes without the incremental cache\n";
    [title, &table(&head, &rows)].join("\n")
}

fn row(name: &str, spread: Spread) -> [String; 4] {
    let [median, lowest, highest] =
        [spread.median, spread.lowest, spread.highest].map(|number| format!("{number:.3}"));
    [name.to_owned(), median, lowest, highest]
}

/// Aligned: names to the left, figures to the right.
fn table<const N: usize>(head: &[&str], rows: &[[String; N]]) -> String {
    let head: Vec<_> = head.iter().map(|&cell| cell.to_owned()).collect();
    let mut lines = vec![head];
    lines.extend(rows.iter().map(|row| row.to_vec()));
    let mut widths = [0; N];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.len().max(*width);
        }
    }
    let aligned = |line: &Vec<String>| {
        let cells = line.iter().zip(widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| match column {
            0 => format!("{cell:width$}"),
            _ => format!("{cell:>width$}"),
        });
        format!("  {}\n", cells.collect::<Vec<_>>().join("  "))
    };
    lines.iter().map(aligned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_below_each_other() {
        let rows = [("plain", 1.5), ("by_hand", 12.25)]
            .map(|(name, number)| row(name, Spread::of([number])));
        assert_eq!(
            table(&["seconds", "median", "lowest", "highest"], &rows),
            "  seconds  median  lowest  highest\n  \
               plain     1.500   1.500    1.500\n  \
               by_hand  12.250  12.250   12.250\n"
        );
    }

    #[test]
    fn times_name_every_crate_ratio_and_difference() {
        let text = times(Cache::On, &[Round::default()]);
        let names: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split("  ").next())
            .collect();
        let wanted = [
            "seconds",
            "plain",
            "by_hand",
            "idempotent",
            "instrument",
            "nothing changed",
            "ratio",
            "idempotent / by_hand",
            "idempotent / plain",
            "instrument / plain",
            "ms for each handler",
            "(idempotent - plain) / 300",
            "(instrument - plain) / 300",
            "(by_hand - plain) / 300",
        ];
        assert_eq!(names, wanted);
    }

    #[test]
    fn an_expansion_counts_for_one_handler_beyond_the_plain_one() {
        let of = |tokens, bytes| Expansion { tokens, bytes };
        let sizes = [of(600, 3000), of(900, 3300), of(3600, 9000), of(600, 3000)];
        let text = expansions(&sizes);
        assert!(text.contains("which has 2 tokens, 10 bytes"), "{text}");
        assert!(
            text.contains("  idempotent            10     20\n"),
            "{text}"
        );
        assert!(
            text.contains("  instrument             0      0\n"),
            "{text}"
        );
    }

    #[test]
    fn passes_that_were_not_printed_are_one_line() {
        let some = Passes {
            expansion: 0.5,
            total: 2.0,
        };
        let text = passes(&[Some(some); 4]);
        assert!(text.contains("0.500  2.000   25 %\n"), "{text}");
        let text = passes(&[Some(some), None, Some(some), Some(some)]);
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}
