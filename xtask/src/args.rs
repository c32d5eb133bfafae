//! The command line.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::chaos::{Fault, Storm};
use crate::error::Error;
use crate::servers::{Install, Policy, Source};

pub(crate) const USAGE: &str = "\
usage: cargo xtask TASK [OPTION…]

  test               everything: servers, fmt, clippy, doc, doc tests, all other tests
    --full           also what is long: million-case properties, soak, clusters
    --throw-away     start throw-away servers, whatever is named in the environment or runs here
    --no-install     never install a server
  servers            says which servers the tests would use
    --throw-away     starts throw-away ones, and keeps them until the end of input (Ctrl-D)
    --no-install     never install a server
  fmt                formats; with --check only says what is not formatted
  clippy             all features, none, and each database feature alone; warnings are errors
  doc                builds the documentation; warnings are errors
  ui                 the compile-fail and compile-pass cases; --bless rewrites the .stderr files
  snapshots          the macro's expansions; --bless rewrites them
  msrv               checks with the oldest compiler that we support
  compile-time       what `#[idempotent]` costs at compile time, beside a claim written by hand
    --rounds N       how often each crate is checked: 7 unless you say so
  chaos              a storm over consumers, their broker and their database, then an audit
    --messages N     how many events: 100000 unless you say so
    --consumers N    how many processes consume: 4 unless you say so
    --seed N         the storm that a run with this seed had
    --fault NAME     consumers that do it wrong, by `early-ack` or `no-key`: the audit finds it
  deny               licences, advisories and duplicates of what we depend on
  help               this text";

/// How many rounds there are when nobody says how many.
const ROUNDS: u32 = 7;

/// As many as a person may have the patience for.
const MOST_ROUNDS: u32 = 999;

/// How many events a storm has when nobody says how many.
const MESSAGES: u32 = 100_000;

/// Of fewer, none comes twice; and more would take days.
const LEAST_MESSAGES: u32 = 10;
const MOST_MESSAGES: u32 = 10_000_000;

/// Each has four sessions with a server that has two hundred.
const MOST_CONSUMERS: u32 = 32;

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Task {
    Chaos(Storm),
    Clippy,
    /// In so many rounds.
    CompileTime(u32),
    Deny,
    Doc,
    Fmt(Formatting),
    Help,
    Msrv,
    Servers(Policy),
    Snapshots(Expected),
    Test(Length, Policy),
    Ui(Expected),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Formatting {
    Check,
    Write,
}

/// What a test does with an output that is not the expected one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Expected {
    Bless,
    Compare,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Length {
    Full,
    Short,
}

impl Task {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, Error> {
        let Some((name, rest)) = arguments.split_first() else {
            return Err(Error::new("which task?"));
        };
        let mut options = Options {
            task: name,
            rest: rest.to_vec(),
        };
        let task = match name.as_str() {
            "chaos" => Self::Chaos(options.storm()?),
            "clippy" => Self::Clippy,
            "compile-time" => Self::CompileTime(
                options
                    .number("--rounds", 1..=MOST_ROUNDS)?
                    .unwrap_or(ROUNDS),
            ),
            "deny" => Self::Deny,
            "doc" => Self::Doc,
            "fmt" => Self::Fmt(options.either("--check", Formatting::Check, Formatting::Write)),
            "help" | "--help" | "-h" => Self::Help,
            "msrv" => Self::Msrv,
            "servers" => Self::Servers(options.policy()),
            "snapshots" => Self::Snapshots(options.expected()),
            "test" => {
                let length = options.either("--full", Length::Full, Length::Short);
                Self::Test(length, options.policy())
            }
            "ui" => Self::Ui(options.expected()),
            unknown => return Err(Error::new(format!("there is no task `{unknown}`"))),
        };
        options.finish(task)
    }
}

/// The options of a task that nothing has asked for yet.
struct Options<'a> {
    task: &'a str,
    rest: Vec<String>,
}

impl Options<'_> {
    fn either<T>(&mut self, option: &str, with: T, without: T) -> T {
        let before = self.rest.len();
        self.rest.retain(|given| given != option);
        if self.rest.len() < before {
            with
        } else {
            without
        }
    }

    fn storm(&mut self) -> Result<Storm, Error> {
        let messages = self.number("--messages", LEAST_MESSAGES..=MOST_MESSAGES)?;
        let usual = Storm::new(messages.unwrap_or(MESSAGES));
        let consumers = self.number("--consumers", 1..=MOST_CONSUMERS)?;
        let seed = self.number("--seed", 0..=u64::MAX)?;
        Ok(Storm {
            consumers: consumers.unwrap_or(usual.consumers),
            seed: seed.unwrap_or(usual.seed),
            fault: self.fault()?,
            ..usual
        })
    }

    fn fault(&mut self) -> Result<Option<Fault>, Error> {
        let names = Fault::ALL.map(|fault| format!("`{}`", fault.name()));
        let wanted = format!("`--fault` takes {}", names.join(" or "));
        let Some(name) = self.value("--fault", &wanted)? else {
            return Ok(None);
        };
        match name.parse() {
            Ok(fault) => Ok(Some(fault)),
            Err(_) => Err(Error::new(format!("{wanted}, not `{name}`"))),
        }
    }

    fn number<T: Display + FromStr + PartialOrd>(
        &mut self,
        option: &str,
        range: RangeInclusive<T>,
    ) -> Result<Option<T>, Error> {
        let (least, most) = (range.start(), range.end());
        let wanted = format!("`{option}` takes a number from {least} to {most}");
        let Some(given) = self.value(option, &wanted)? else {
            return Ok(None);
        };
        match given.parse() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(Error::new(format!("{wanted}, not `{given}`"))),
        }
    }

    /// What stands behind an option, if that is there.
    fn value(&mut self, option: &str, wanted: &str) -> Result<Option<String>, Error> {
        let Some(at) = self.rest.iter().position(|given| given == option) else {
            return Ok(None);
        };
        let end = self.rest.len().min(at + 2);
        match self.rest.drain(at..end).nth(1) {
            Some(value) => Ok(Some(value)),
            None => Err(Error::new(format!("{wanted}, and there is none"))),
        }
    }

    fn expected(&mut self) -> Expected {
        self.either("--bless", Expected::Bless, Expected::Compare)
    }

    fn policy(&mut self) -> Policy {
        Policy {
            source: self.either("--throw-away", Source::ThrowAway, Source::Any),
            install: self.either("--no-install", Install::Refused, Install::Allowed),
        }
    }

    fn finish(self, task: Task) -> Result<Task, Error> {
        match self.rest.first() {
            None => Ok(task),
            Some(unknown) => Err(Error::new(format!(
                "`{}` does not take `{unknown}`",
                self.task
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Task, String> {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        Task::parse(&words).map_err(|error| error.to_string())
    }

    const ANY: Policy = Policy {
        source: Source::Any,
        install: Install::Allowed,
    };

    #[test]
    fn test_without_options_is_short_and_may_install() {
        assert_eq!(parse("test"), Ok(Task::Test(Length::Short, ANY)));
    }

    #[test]
    fn options_come_in_any_order() {
        let policy = Policy {
            source: Source::ThrowAway,
            install: Install::Refused,
        };
        let wanted = Ok(Task::Test(Length::Full, policy));
        assert_eq!(parse("test --full --throw-away --no-install"), wanted);
        assert_eq!(parse("test --no-install --throw-away --full"), wanted);
    }

    #[test]
    fn each_task_has_its_own_options() {
        assert_eq!(parse("fmt"), Ok(Task::Fmt(Formatting::Write)));
        assert_eq!(parse("fmt --check"), Ok(Task::Fmt(Formatting::Check)));
        assert_eq!(parse("ui --bless"), Ok(Task::Ui(Expected::Bless)));
        assert_eq!(parse("snapshots"), Ok(Task::Snapshots(Expected::Compare)));
        assert_eq!(parse("servers"), Ok(Task::Servers(ANY)));
    }

    #[test]
    fn rounds_are_a_number() {
        assert_eq!(parse("compile-time"), Ok(Task::CompileTime(7)));
        assert_eq!(parse("compile-time --rounds 1"), Ok(Task::CompileTime(1)));
        for bad in ["0", "-1", "1000", "2.5", "many", "--rounds", "99999999999"] {
            assert_eq!(
                parse(&format!("compile-time --rounds {bad}")).unwrap_err(),
                format!("`--rounds` takes a number from 1 to 999, not `{bad}`")
            );
        }
    }

    #[test]
    fn rounds_without_a_number_or_twice_are_refused() {
        assert_eq!(
            parse("compile-time --rounds").unwrap_err(),
            "`--rounds` takes a number from 1 to 999, and there is none"
        );
        assert_eq!(
            parse("compile-time --rounds 3 --rounds 4").unwrap_err(),
            "`compile-time` does not take `--rounds`"
        );
        assert_eq!(
            parse("test --rounds 3").unwrap_err(),
            "`test` does not take `--rounds`"
        );
    }

    #[test]
    fn a_storm_is_what_the_options_say() {
        let storm = Storm {
            messages: 500,
            consumers: 2,
            seed: 7,
            fault: Some(Fault::NoKey),
        };
        assert_eq!(
            parse("chaos --seed 7 --fault no-key --consumers 2 --messages 500"),
            Ok(Task::Chaos(storm))
        );
        let Ok(Task::Chaos(usual)) = parse("chaos") else {
            panic!("not a storm");
        };
        let seed = usual.seed;
        assert_eq!(
            usual,
            Storm {
                messages: 100_000,
                consumers: 4,
                seed,
                fault: None
            }
        );
    }

    #[test]
    fn what_is_no_storm_is_refused() {
        for (option, reason) in [
            (
                "--messages 9",
                "`--messages` takes a number from 10 to 10000000, not `9`",
            ),
            (
                "--seed",
                "`--seed` takes a number from 0 to 18446744073709551615, and there is none",
            ),
            (
                "--fault early",
                "`--fault` takes `early-ack` or `no-key`, not `early`",
            ),
        ] {
            assert_eq!(parse(&format!("chaos {option}")).unwrap_err(), reason);
        }
    }

    #[test]
    fn unknown_words_are_named() {
        assert_eq!(parse("").unwrap_err(), "which task?");
        assert_eq!(parse("tset").unwrap_err(), "there is no task `tset`");
        assert_eq!(
            parse("test --fulll").unwrap_err(),
            "`test` does not take `--fulll`"
        );
        assert_eq!(
            parse("servers --full").unwrap_err(),
            "`servers` does not take `--full`"
        );
        assert_eq!(
            parse("clippy --bless").unwrap_err(),
            "`clippy` does not take `--bless`"
        );
    }

    #[test]
    fn usage_names_every_task() {
        for task in [
            "test",
            "servers",
            "fmt",
            "clippy",
            "doc",
            "ui",
            "snapshots",
            "msrv",
            "compile-time",
            "chaos",
            "deny",
        ] {
            assert!(USAGE.contains(&format!("\n  {task} ")), "{task}");
        }
    }
}
