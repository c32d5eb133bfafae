//! What became of each delivery: a table for people, and a last line for
//! programs.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use idempotent_runtime::{Disposition, Outcome, disposition};

use crate::options::Program;
use crate::stop::Stop;

/// What the columns that tell deliveries apart are called, and how wide they
/// are.
pub type Columns<const N: usize> = [(&'static str, usize); N];

/// Prints a row for each delivery when it has its answer, and counts.
#[derive(Debug)]
pub struct Report<const N: usize> {
    columns: Columns<N>,
    processed: u64,
    duplicates: u64,
    failed: u64,
    counter: Counter,
}

impl<const N: usize> Report<N> {
    /// Begins with what it is about, what is read, where the rows go, and the
    /// table's heading.
    ///
    /// # Errors
    ///
    /// Nobody reads the output.
    pub fn begin(
        program: &Program,
        events: &str,
        database: &str,
        columns: Columns<N>,
    ) -> Result<Self, Stop> {
        line(program.promise)?;
        line("")?;
        line(&format!("events    {}", printable(events)))?;
        line(&format!("database  {}", printable(database)))?;
        line("")?;
        let mut report = Self {
            columns,
            processed: 0,
            duplicates: 0,
            failed: 0,
            counter: Counter::new(),
        };
        let titles = report.cells(columns.map(|(title, _)| title));
        report.row(&titles, "result", "answer")?;
        line(&"-".repeat(WIDTH))?;
        Ok(report)
    }

    /// A delivery has its answer: it was handled, it is a duplicate, or the
    /// handler failed.
    ///
    /// # Errors
    ///
    /// Nobody reads the output.
    pub fn answered<E: StdError + 'static>(
        &mut self,
        number: u64,
        cells: [&str; N],
        answer: &Result<Outcome<()>, E>,
    ) -> Result<(), Stop> {
        let cells = self.cells(cells);
        match answer {
            Ok(Outcome::Processed(())) => {
                self.processed += 1;
                self.row(&cells, "processed, row written", "ack")
            }
            Ok(Outcome::Duplicate) => {
                self.duplicates += 1;
                self.row(&cells, "duplicate, nothing done", "ack")
            }
            Err(error) => {
                self.failed += 1;
                self.complain(number, error);
                let answer = match disposition(error) {
                    Disposition::Redeliver => "requeue",
                    Disposition::Reject => "reject",
                };
                self.row(
                    &cells,
                    &format!("failed, reported as line {number}"),
                    answer,
                )
            }
        }
    }

    /// A line that holds no delivery.
    ///
    /// # Errors
    ///
    /// Nobody reads the output.
    pub fn bad_line(&mut self, number: u64, why: &str) -> Result<(), Stop> {
        self.failed += 1;
        self.complain(number, why);
        let width = self.cells([""; N]).len();
        let label = format!("{:width$}", format!("line {number}"));
        self.row(&label, &format!("bad line: {why}"), "reject")
    }

    /// The consumer died before it could answer. The delivery is not counted
    /// yet: the broker brings it again.
    ///
    /// # Errors
    ///
    /// Nobody reads the output.
    pub fn crashed(&mut self, cells: [&str; N]) -> Result<(), Stop> {
        let cells = self.cells(cells);
        self.row(&cells, "crashed before commit, nothing kept", "none")
    }

    /// Ends with remarks on what the database holds, and the last line.
    ///
    /// # Errors
    ///
    /// Nobody reads the output.
    pub fn finish(mut self, remarks: Result<Vec<String>, sqlx::Error>) -> Result<ExitCode, Stop> {
        self.counter.clear();
        line("")?;
        match remarks {
            Ok(remarks) => remarks.iter().try_for_each(|remark| line(remark))?,
            Err(error) => line(&format!("The database does not answer: {error}"))?,
        }
        let deliveries = self.deliveries();
        let Self {
            processed,
            duplicates,
            failed,
            ..
        } = self;
        line(&format!(
            "deliveries={deliveries} processed={processed} duplicates={duplicates} failed={failed}"
        ))?;
        Ok(match failed {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        })
    }

    const fn deliveries(&self) -> u64 {
        self.processed + self.duplicates + self.failed
    }

    fn cells(&self, texts: [&str; N]) -> String {
        let cells = self.columns.iter().zip(texts);
        cells
            .map(|((_, width), text)| fit(text, *width) + GAP)
            .collect()
    }

    fn row(&mut self, cells: &str, result: &str, answer: &str) -> Result<(), Stop> {
        let width = WIDTH - cells.chars().count() - GAP.len() - ANSWER;
        line(&format!("{cells}{}{GAP}{answer}", fit(result, width)))?;
        self.counter.show(self.deliveries());
        Ok(())
    }

    fn complain(&mut self, number: u64, why: impl Display) {
        self.counter.clear();
        let text = format!("line {number}: {why}");
        // If nobody listens, the table and the exit status still say it.
        let _ = writeln!(io::stderr(), "{}", printable(&text));
    }
}

/// How far it is, for somebody who waits and sees no table.
#[derive(Debug)]
struct Counter {
    is_wanted: bool,
    is_shown: bool,
    next: Instant,
}

impl Counter {
    const PAUSE: Duration = Duration::from_millis(200);

    fn new() -> Self {
        Self {
            is_wanted: io::stderr().is_terminal() && !io::stdout().is_terminal(),
            is_shown: false,
            next: Instant::now() + Self::PAUSE,
        }
    }

    fn show(&mut self, deliveries: u64) {
        if self.is_wanted && Instant::now() >= self.next {
            let _ = write!(io::stderr(), "\r{deliveries} deliveries");
            self.is_shown = true;
            self.next = Instant::now() + Self::PAUSE;
        }
    }

    fn clear(&mut self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r{:40}\r", "");
            self.is_shown = false;
        }
    }
}

/// A row must not fill a terminal of 80 columns.
const WIDTH: usize = 79;
/// The width of the last column.
const ANSWER: usize = "requeue".len();
const GAP: &str = "  ";

/// Not `println!`, which panics when nobody reads.
fn line(text: &str) -> Result<(), Stop> {
    Ok(writeln!(io::stdout(), "{text}")?)
}

/// Cuts or fills a text to a width.
fn fit(text: &str, width: usize) -> String {
    let text = printable(text);
    if text.chars().count() <= width {
        return format!("{text:width$}");
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

/// Texts come from outside: a control character in one could rewrite the screen.
fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        text.replace(char::is_control, "\u{fffd}").into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_or_filled() {
        assert_eq!(fit("tr-1001", 7), "tr-1001");
        assert_eq!(fit("tr-10010", 7), "tr-100…");
        assert_eq!(fit("ééééé", 4), "ééé…");
        assert_eq!(fit("é", 3), "é  ");
        assert_eq!(fit("", 2), "  ");
    }

    #[test]
    fn control_characters_do_not_reach_the_screen() {
        assert_eq!(fit("a\u{1b}[2Jb\n", 7), "a\u{fffd}[2Jb\u{fffd}");
    }
}
