//! `docs/errors.md` shows the programs of `ui/fail/families`, each with what the
//! compiler prints. `cargo xtask ui --bless` writes both into the page.

use std::path::Path;

use expect_test::expect_file;

use super::{fail, files, read};

const PAGE: &str = "../docs/errors.md";

#[test]
fn the_page_shows_the_programs_and_the_real_texts() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let text = read(&page);
    expect_file![&page].assert_eq(&filled(&text));

    for program in files(&fail().join("families"), "rs") {
        let name = program.file_stem().unwrap().to_str().unwrap();
        let marker = format!("<!-- program: families/{name} -->");
        assert_eq!(text.matches(&marker).count(), 1, "{marker}");
    }
}

/// The page, with the two blocks after each marker as they are to be.
fn filled(page: &str) -> String {
    let mut sections = page.split("<!-- program: ");
    let mut filled = sections.next().unwrap().to_owned();
    for section in sections {
        let (name, section) = section.split_once(" -->").unwrap();
        let program = fail().join(name);
        let source = read(&program.with_extension("rs"));
        let source = source.strip_suffix("\nfn main() {}\n").unwrap().trim_end();
        let said = read(&program.with_extension("stderr"));

        let (_, rest) = block(section, "```rust,compile_fail\n");
        let (between, rest) = block(rest, "```text\n");
        let said = said.trim_end();
        for piece in [
            "<!-- program: ",
            name,
            " -->\n```rust,compile_fail\n",
            source,
            "\n```",
            between,
            "```text\n",
            said,
            "\n```",
            rest,
        ] {
            filled.push_str(piece);
        }
    }
    filled
}

/// What stands before and after a block.
fn block<'p>(text: &'p str, fence: &str) -> (&'p str, &'p str) {
    let (before, block) = text.split_once(fence).unwrap();
    let (_, rest) = block.split_once("```").unwrap();
    (before, rest)
}
