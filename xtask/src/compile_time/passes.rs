//! What `-Ztime-passes` says.

/// Seconds of one run of the compiler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Passes {
    /// In which macros were found, run, and their tokens parsed.
    pub(super) expansion: f64,
    pub(super) total: f64,
}

impl Passes {
    /// Reads the two lines among all others; `None` if one is not there.
    pub(super) fn parse(stderr: &str) -> Option<Self> {
        let seconds = |name| stderr.lines().find_map(|line| seconds_of(line, name));
        Some(Self {
            expansion: seconds("macro_expand_crate")?,
            total: seconds("total")?,
        })
    }
}

/// Of a line such as `time:   0.412; rss:   60MB ->  131MB (  +71MB) macro_expand_crate`.
fn seconds_of(line: &str, name: &str) -> Option<f64> {
    let rest = line.trim_start().strip_prefix("time:")?;
    let (seconds, rest) = rest.split_once(';')?;
    let last = rest.split_whitespace().next_back()?;
    (last == name).then(|| seconds.trim().parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const STDERR: &str = "   Compiling plain v0.0.0 (/somewhere/plain)
time:   0.001; rss:   47MB ->   49MB (   +2MB)\tparse_crate
time:   0.412; rss:   60MB ->  131MB (  +71MB)\tmacro_expand_crate
warning: time: 9.0; total
time:   1.503; rss:  131MB ->  180MB (  +49MB)\tMIR_borrow_checking
time:   2.750; rss:   33MB ->  120MB (  +87MB)\ttotal
    Finished `dev` profile [unoptimized + debuginfo] target(s) in 2.90s
";

    #[test]
    fn the_two_lines_are_found_among_others() {
        let wanted = Passes {
            expansion: 0.412,
            total: 2.75,
        };
        assert_eq!(Passes::parse(STDERR), Some(wanted));
    }

    #[test]
    fn a_line_that_is_missing_or_malformed_is_nothing() {
        for absent in ["macro_expand_crate", "total"] {
            let without: Vec<_> = STDERR
                .lines()
                .filter(|line| !line.ends_with(absent))
                .collect();
            assert_eq!(Passes::parse(&without.join("\n")), None, "{absent}");
        }
        assert_eq!(Passes::parse(&STDERR.replace("2.750", "long")), None);
        assert_eq!(Passes::parse(""), None);
    }
}
