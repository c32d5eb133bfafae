//! What `#[idempotent]` costs when it is compiled.
//!
//! Four crates of the same handlers are checked in turn: without a claim, with one written by
//! hand, with `#[idempotent]`, and with `#[tracing::instrument]`, an attribute that people know.
//! The machine may be busy with other things: only what was measured in one round is compared.

mod expansion;
mod figures;
mod passes;
mod project;
mod report;
mod rounds;
mod sources;

use std::process::Command;

use crate::cargo::capture;
use crate::compile_time::expansion::Expansion;
use crate::compile_time::passes::Passes;
use crate::compile_time::project::{Cache, Project};
use crate::compile_time::rounds::Stopwatch;
use crate::compile_time::sources::{Edit, Variant};
use crate::error::Error;
use crate::steps::step;

/// Measures, and prints the tables.
pub(crate) fn run(rounds: u32) -> Result<(), Error> {
    let project = step("crates", Project::generate)?;
    step("dependencies", || project.prepare())?;
    let mut stopwatch = Stopwatch::new(&project);
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for number in 0..rounds {
        step(&format!("round {} of {rounds}", number + 1), || {
            cold.push(stopwatch.round(number, Cache::Off)?);
            warm.push(stopwatch.round(number, Cache::On)?);
            Ok(())
        })?;
    }
    let expansions = step("expansions", || expansions(&project))?;
    let passes = step("passes", || passes(&project))?;

    let compiler = capture(Command::new("rustc").arg("--version"), "the compiler")?;
    let report = [
        report::title(&compiler.stdout, rounds),
        report::times(Cache::Off, &cold),
        report::times(Cache::On, &warm),
        report::expansions(&expansions),
        report::passes(&passes),
    ];
    print!("{}", report.join("\n"));
    Ok(())
}

fn expansions(project: &Project) -> Result<[Expansion; 4], Error> {
    let mut expansions = [Expansion::default(); 4];
    for (variant, expansion) in Variant::ALL.into_iter().zip(&mut expansions) {
        project.write(variant, Edit::None)?;
        let mut command = project.inspect(variant, "-Zunpretty=expanded");
        *expansion = Expansion::of(&capture(&mut command, "the expansion")?.stdout);
    }
    Ok(expansions)
}

fn passes(project: &Project) -> Result<[Option<Passes>; 4], Error> {
    let mut passes = [None; 4];
    for (variant, passes) in Variant::ALL.into_iter().zip(&mut passes) {
        let mut command = project.inspect(variant, "-Ztime-passes");
        *passes = Passes::parse(&capture(&mut command, "a check with -Ztime-passes")?.stderr);
    }
    Ok(passes)
}
