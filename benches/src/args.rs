//! Arguments by their place.

use std::fmt::Display;
use std::str::FromStr;

use crate::Failed;

/// The arguments of the program, taken one after the other.
#[derive(Debug)]
pub struct Args {
    usage: &'static str,
    left: std::iter::Skip<std::env::Args>,
}

impl Args {
    /// Those that the program was called with.
    #[must_use]
    pub fn new(usage: &'static str) -> Self {
        Self {
            usage,
            left: std::env::args().skip(1),
        }
    }

    /// Takes a text that must be there.
    ///
    /// # Errors
    ///
    /// It is not, or it is an option, for there are none.
    pub fn text(&mut self, name: &str) -> Result<String, Failed> {
        self.next()?
            .ok_or_else(|| self.refused(format!("the {name} is missing")))
    }

    /// Takes a text that may be left out.
    ///
    /// # Errors
    ///
    /// It is an option.
    pub fn optional(&mut self) -> Result<Option<String>, Failed> {
        self.next()
    }

    /// Takes a number that may be left out.
    ///
    /// # Errors
    ///
    /// It is none, or too small.
    pub fn number<T>(&mut self, name: &str, default: T, least: T) -> Result<T, Failed>
    where
        T: Copy + Display + FromStr + PartialOrd,
    {
        let Some(text) = self.next()? else {
            return Ok(default);
        };
        match text.parse() {
            Ok(number) if number >= least => Ok(number),
            _ => Err(self.refused(format!(
                "the {name} must be a whole number from {least} on, not `{text}`"
            ))),
        }
    }

    /// Takes no more.
    ///
    /// # Errors
    ///
    /// There are more.
    pub fn end(mut self) -> Result<(), Failed> {
        match self.next()? {
            None => Ok(()),
            Some(text) => Err(self.refused(format!("`{text}` is too much"))),
        }
    }

    /// Says what is wrong with them.
    #[must_use]
    pub fn refused(&self, fact: impl Display) -> Failed {
        format!("{fact}\n{}", self.usage).into()
    }

    fn next(&mut self) -> Result<Option<String>, Failed> {
        match self.left.next() {
            Some(text) if text.starts_with('-') => {
                Err(self.refused(format!("there is no option `{text}`")))
            }
            next => Ok(next),
        }
    }
}
