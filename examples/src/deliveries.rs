//! Deliveries, one JSON object a line.

use std::env;
use std::path::Path;

use serde::Deserialize;
use tokio::fs::File;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, BufReader, stdin};

use crate::stop::Stop;

/// The deliveries of a file or of the standard input, each read when it is
/// asked for.
pub struct Deliveries {
    input: Box<dyn AsyncBufRead + Unpin>,
    name: String,
    line: u64,
}

/// One line of the input.
#[derive(Debug)]
pub struct Line {
    /// Its number; the first is 1.
    pub number: u64,
    text: Vec<u8>,
}

impl Deliveries {
    /// Opens a file; `-` is the standard input.
    ///
    /// # Errors
    ///
    /// There is no such file, or it cannot be read.
    pub async fn open(path: &Path) -> Result<Self, Stop> {
        let name = name(path);
        let cannot_read = |why: &str| Stop::start(format_args!("cannot read `{name}`: {why}"));
        let input: Box<dyn AsyncBufRead + Unpin> = if path == Path::new("-") {
            Box::new(BufReader::new(stdin()))
        } else {
            let opened = File::open(path).await;
            let file = opened.map_err(|error| cannot_read(&error.to_string()))?;
            if file.metadata().await.is_ok_and(|found| found.is_dir()) {
                return Err(cannot_read("it is a folder"));
            }
            Box::new(BufReader::new(file))
        };
        Ok(Self {
            input,
            name,
            line: 0,
        })
    }

    /// Where they come from.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the next line that is not blank.
    ///
    /// # Errors
    ///
    /// The input broke.
    pub async fn next(&mut self) -> Result<Option<Line>, Stop> {
        loop {
            let mut text = Vec::new();
            let read = self.input.read_until(b'\n', &mut text).await;
            let length = read.map_err(|error| {
                Stop::broken(format_args!("cannot read {} on: {error}", self.name()))
            })?;
            if length == 0 {
                return Ok(None);
            }
            self.line += 1;
            if self.line == 1 && text.starts_with(BYTE_ORDER_MARK) {
                text.drain(..BYTE_ORDER_MARK.len());
            }
            if !text.trim_ascii().is_empty() {
                let number = self.line;
                return Ok(Some(Line { number, text }));
            }
        }
    }
}

impl Line {
    /// Reads the delivery.
    ///
    /// # Errors
    ///
    /// Says what is wrong with it, and at which column.
    pub fn parse<'l, T: Deserialize<'l>>(&'l self) -> Result<T, String> {
        if !self.text.trim_ascii_start().starts_with(b"{") {
            return Err("not a JSON object".to_owned());
        }
        serde_json::from_slice(&self.text).map_err(|error| {
            // To serde, each of our lines is a whole text, so that its line is always 1.
            let (line, column) = (error.line(), error.column());
            let text = error.to_string();
            match text.strip_suffix(&format!(" at line {line} column {column}")) {
                Some(what) => format!("{what} (column {column})"),
                None => text,
            }
        })
    }
}

/// A path below the current folder is shown as the user would write it.
fn name(path: &Path) -> String {
    if path == Path::new("-") {
        return "the standard input".to_owned();
    }
    let here = env::current_dir().unwrap_or_default();
    let shown = path.strip_prefix(here).unwrap_or(path);
    shown.display().to_string()
}

/// Some editors begin UTF-8 files with it.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
