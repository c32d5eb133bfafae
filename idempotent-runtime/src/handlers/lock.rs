//! The handlers of now against those of the last commit.

use std::env;
use std::ffi::OsStr;
use std::fmt::{self, Debug, Display, Formatter};
use std::io::ErrorKind;
use std::path::Path;
use std::{error, fs};

use super::{HandlerInfo, handlers};
use crate::table::Table;

const VARIABLE: &str = "IDEMPOTENT_LOCK";

const HEADER: &str = "\
# Scopes and keys of the idempotent handlers, checked by a test. A changed line is a handler that no
# longer recognises what it has processed, unless it says `was(…)`.
";

/// Checks that no two handlers share a scope, and that the handlers are those of a committed file:
/// one that is renamed or gone, has another key or another table, or is new, is an error that says
/// what to write. For use in a test; see the [module](mod@crate::handlers).
///
/// The path is seen from the working directory, which `cargo test` makes that of the package.
///
/// # Write the file
///
/// With `IDEMPOTENT_LOCK=write` in the environment it writes the file instead, in place of comparing:
///
/// ```sh
/// IDEMPOTENT_LOCK=write cargo test handlers_keep_their_keys
/// ```
///
/// The file has a line for each handler, sorted: scope, tab, key; and, if it is not the default one,
/// tab, table. It is made to be read in a review:
///
/// ```text
/// audit     event.id
/// notify    event.id, channel
/// ```
///
/// # Errors
///
/// All that differs, with the way out; a file that is absent or cannot be read or written. That no
/// handler is linked in at all is an error, too: the test would see nothing.
///
/// # Examples
///
/// ```standalone_crate
/// use idempotent_runtime::handlers::check_lock;
///
/// // No crate with handlers is linked into this program.
/// let error = check_lock("idempotent.lock").unwrap_err().to_string();
/// assert!(error.contains("no idempotent handler is linked in"));
/// ```
pub fn check_lock(path: impl AsRef<Path>) -> Result<(), LockError> {
    let (path, all) = (path.as_ref(), handlers());
    let mode = env::var_os(VARIABLE);
    check(path, &all, Mode::of(mode.as_deref())?)
}

/// Checks that no two handlers share a scope, also not one that is the earlier name of another
/// (`was`). [`check_lock`] does it, too.
///
/// Handlers whose keys are in different tables may.
///
/// # Errors
///
/// Every scope of several handlers, with the place of each.
pub fn check_scopes() -> Result<(), LockError> {
    settled("some handlers share a scope", &shared_scopes(&handlers()))
}

/// What [`check_lock`] found. `Debug` is as readable as `Display`: a test that returns it shows the
/// former.
pub struct LockError(String);

impl Display for LockError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Debug for LockError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for LockError {}

#[derive(Clone, Copy, Debug)]
enum Mode {
    Compare,
    Write,
}

impl Mode {
    fn of(variable: Option<&OsStr>) -> Result<Self, LockError> {
        match variable.map(OsStr::to_string_lossy).as_deref() {
            None | Some("") => Ok(Self::Compare),
            Some("write") => Ok(Self::Write),
            Some(other) => Err(LockError(format!(
                "`{VARIABLE}` is {other:?}\nhelp: write `{VARIABLE}=write`, or leave it out to compare"
            ))),
        }
    }
}

/// A line of the file.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Line {
    scope: String,
    key: String,
    table: String,
}

impl Line {
    fn of(info: &HandlerInfo) -> Self {
        Self {
            scope: info.scope().to_owned(),
            key: on_one_line(info.key()),
            table: info.table().to_string(),
        }
    }

    fn read(text: &str) -> Option<Self> {
        let mut fields = text.split('\t');
        let line = Self {
            scope: fields.next().filter(|scope| !scope.is_empty())?.to_owned(),
            key: fields.next().filter(|key| !key.is_empty())?.to_owned(),
            table: fields
                .next()
                .map_or_else(|| Table::default().to_string(), str::to_owned),
        };
        fields.next().is_none().then_some(line)
    }
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t{}", self.scope, self.key)?;
        if self.table != Table::default().to_string() {
            write!(f, "\t{}", self.table)?;
        }
        Ok(())
    }
}

/// A key with a literal in it may hold anything.
fn on_one_line(text: &str) -> String {
    let letters = text.chars().map(|letter| {
        if letter.is_control() {
            letter.escape_default().to_string()
        } else {
            letter.to_string()
        }
    });
    letters.collect()
}

fn check(path: &Path, all: &[&HandlerInfo], mode: Mode) -> Result<(), LockError> {
    let file = path.display();
    if all.is_empty() {
        return Err(LockError(
            "no idempotent handler is linked in\nhelp: name a crate that has some in this test, \
             as `use my_service as _;`"
                .to_owned(),
        ));
    }
    let shared = shared_scopes(all);
    if let Mode::Write = mode {
        settled(&format!("`{file}` is not written"), &shared)?;
        return fs::write(path, text_of(all))
            .map_err(|error| LockError(format!("`{file}` cannot be written: {error}")));
    }
    let committed = match fs::read_to_string(path) {
        Ok(committed) => committed,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(LockError(format!(
                "`{file}` does not exist\nhelp: run this test with `{VARIABLE}=write` to write it, \
                 and commit it"
            )));
        }
        Err(error) => return Err(LockError(format!("`{file}` cannot be read: {error}"))),
    };
    let differences = differences(all, &committed);
    let accept = (!differences.is_empty()).then(|| {
        format!(
            "to accept all that differs, run this test with `{VARIABLE}=write` and commit `{file}`"
        )
    });
    let found: Vec<String> = shared
        .into_iter()
        .chain(differences)
        .chain(accept)
        .collect();
    settled(&format!("the handlers are not those of `{file}`"), &found)
}

fn settled(fact: &str, found: &[String]) -> Result<(), LockError> {
    if found.is_empty() {
        return Ok(());
    }
    Err(LockError(format!("{fact}\n\n{}\n", found.join("\n\n"))))
}

fn text_of(all: &[&HandlerInfo]) -> String {
    let mut lines: Vec<Line> = all.iter().map(|info| Line::of(info)).collect();
    lines.sort();
    let lines = lines.iter().map(|line| format!("{line}\n"));
    HEADER.to_owned() + &lines.collect::<String>()
}

/// A scope in which a handler claims: its own, or an earlier one.
struct Claims<'a> {
    scope: &'a str,
    table: String,
    is_earlier: bool,
    by: &'a HandlerInfo,
}

impl<'a> Claims<'a> {
    fn of(info: &'a HandlerInfo) -> Vec<Self> {
        let claims = |scope, is_earlier| Self {
            scope,
            table: info.table().to_string(),
            is_earlier,
            by: info,
        };
        let mut earlier: Vec<&str> = info.was().map(|(scope, _)| scope).collect();
        earlier.sort_unstable();
        earlier.dedup();
        let earlier = earlier.into_iter().filter(|scope| *scope != info.scope());
        let earlier = earlier.map(|scope| claims(scope, true));
        std::iter::once(claims(info.scope(), false))
            .chain(earlier)
            .collect()
    }

    fn is_shared_with(&self, other: &Self) -> bool {
        self.scope == other.scope && self.table == other.table
    }

    fn place(&self) -> String {
        let place = self.by.place();
        if self.is_earlier {
            format!("{place}, by `was`")
        } else {
            place
        }
    }
}

fn shared_scopes(all: &[&HandlerInfo]) -> Vec<String> {
    let mut claims: Vec<Claims<'_>> = all.iter().flat_map(|info| Claims::of(info)).collect();
    claims.sort_by(|one, other| (one.scope, &one.table).cmp(&(other.scope, &other.table)));
    let groups = claims.chunk_by(Claims::is_shared_with);
    groups
        .filter(|group| group.len() > 1)
        .map(|group| {
            let help = if group.iter().any(|claims| claims.is_earlier) {
                "keep `was` on the one handler that has its messages now"
            } else {
                "give all but one another scope"
            };
            format!(
                "`{}` is the scope of {} handlers, which swallow each other's messages\n{}\nhelp: {help}",
                group[0].scope,
                group.len(),
                indented(group.iter().map(Claims::place))
            )
        })
        .collect()
}

fn indented(lines: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = lines.map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

/// Each with the way out.
fn differences(all: &[&HandlerInfo], committed: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut locked = Vec::new();
    for (number, text) in (1..).zip(committed.lines().map(str::trim_end)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match Line::read(text) {
            Some(line) => locked.push(line),
            None => found.push(format!(
                "line {number} is not a scope, a tab, a key: {text:?}"
            )),
        }
    }
    let now: Vec<(Line, &HandlerInfo)> = all.iter().map(|info| (Line::of(info), *info)).collect();
    for line in &locked {
        if now.iter().all(|(other, _)| other != line) {
            found.push(changed(line, &now, &locked));
        }
    }
    for (line, info) in &now {
        if locked.iter().all(|locked| locked.scope != line.scope) {
            found.push(format!(
                "`{}` is new ({})\nhelp: run this test with `{VARIABLE}=write` to add it",
                line.scope,
                info.place()
            ));
        }
    }
    found
}

/// What became of a line that is no handler's any more.
fn changed(line: &Line, now: &[(Line, &HandlerInfo)], locked: &[Line]) -> String {
    let Line { scope, key, table } = line;
    let heir = now.iter().find(|(now, info)| {
        let mut was = info.was();
        now.table == *table && was.any(|(was, of)| was == scope && on_one_line(of) == *key)
    });
    if let Some((now, info)) = heir {
        return format!(
            "`{scope}` with the key `{key}` is `{}` with the key `{}` now, and says so with `was(…)` ({})",
            now.scope,
            now.key,
            info.place()
        );
    }
    match now.iter().find(|(now, _)| now.scope == *scope) {
        Some((now, info)) if now.key == *key => format!(
            "`{scope}` had its keys in the table `{table}`, and has them in `{}` now ({}): what it has \
             processed would run again\n\
             help: move its rows before you accept",
            now.table,
            info.place()
        ),
        Some((now, info)) => format!(
            "`{scope}` had the key `{key}`, and has `{}` now ({}): what it has processed would run again, \
             and a new message may meet the key of an old one\n\
             help: give it another scope, and add `was(scope = {scope:?}, key = {key:?})` if the two keys \
             stand for each other one to one\n\
             help: if only the spelling is another, accept",
            now.key,
            info.place()
        ),
        None => gone(line, now, locked),
    }
}

/// With the handlers that look like it.
fn gone(line: &Line, now: &[(Line, &HandlerInfo)], locked: &[Line]) -> String {
    let Line { scope, key, .. } = line;
    let function = |line: &Line| line.scope.split('(').next().map(str::to_owned);
    let is_new = |line: &Line| locked.iter().all(|locked| locked.scope != line.scope);
    let candidates = now.iter().filter(|(now, _)| {
        is_new(now)
            && (now.key == *key || now.scope.contains('(') && function(now) == function(line))
    });
    let ways: Vec<String> = candidates
        .map(|(now, info)| {
            let was = if now.key == *key {
                format!("`was({scope:?})`")
            } else {
                format!("`was(scope = {scope:?}, key = {key:?})`")
            };
            format!("add {was} to {}", info.place())
        })
        .collect();
    let help = match &ways[..] {
        [] => format!(
            "add `was({scope:?})` to the handler that has its messages now; if none has, accept"
        ),
        [way] => format!("{way}, if that has its messages now"),
        ways => format!(
            "to the one that has its messages now, and to no other,\n{}",
            indented(ways.iter().cloned())
        ),
    };
    format!(
        "`{scope}` with the key `{key}` is gone: what it has processed would run again under another scope\n\
         help: {help}\n\
         help: if its crate is not linked into this test, write `use its_crate as _;`"
    )
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;

    use super::super::{HandlerInfo, Written};
    use super::{Mode, check, differences, text_of};
    use crate::handler::{Handler, Options};

    static NOTICE: Handler = Handler::new("notice", Options::DEFAULT);

    const fn notice(
        key: &'static str,
        was: &'static [(&'static str, &'static str)],
    ) -> HandlerInfo {
        let written = Written {
            inside: || "shop::notice::{{closure}}::_::Here",
            file: "src/lib.rs",
            line: 12,
            key,
            was,
            ..Written::DEFAULT
        };
        HandlerInfo::new(&NOTICE, written)
    }

    #[test]
    fn a_change_that_says_was_needs_only_to_be_written() {
        for (was, committed) in [
            (&[("notify", "")], "notify\tevent.id"),
            (&[("notify", "event.number")], "notify\tevent.number"),
        ] {
            let found = differences(&[&notice("event.id", was)], committed);
            assert!(
                found[0].ends_with(
                    "is `notice` with the key `event.id` now, and says so with `was(…)` \
                     (shop::notice, src/lib.rs:12)"
                ),
                "{found:?}"
            );
            assert!(
                found.iter().all(|found| !found.contains("help: add")),
                "{found:?}"
            );
        }
    }

    #[test]
    fn another_was_does_not_count() {
        for was in [&[("other", "")], &[("notify", "event.number")], &[("", "")]] {
            let found = differences(&[&notice("event.id", was)], "notify\tevent.id");
            assert!(
                found[0].contains("help: add `was(\"notify\")`"),
                "{found:?}"
            );
        }
    }

    #[test]
    fn any_key_has_one_line() {
        let info = notice("stable(f(r\"\t\n#\", 'ä'))", &[]);
        let text = text_of(&[&info]);
        assert!(
            text.ends_with("\nnotice\tstable(f(r\"\\t\\n#\", 'ä'))\n"),
            "{text}"
        );
        assert!(differences(&[&info], &text).is_empty());
    }

    #[test]
    fn an_empty_list_is_never_right() {
        for mode in [Mode::Compare, Mode::Write] {
            let error = check(Path::new("absent.lock"), &[], mode).unwrap_err();
            assert!(format!("{error}").contains("as `use my_service as _;`"));
        }
        assert!(!Path::new("absent.lock").exists());
    }

    #[test]
    fn a_file_that_cannot_be_used_is_an_error() {
        let info = notice("event.id", &[]);
        for (mode, verb) in [(Mode::Compare, "read"), (Mode::Write, "written")] {
            let error = check(Path::new("src"), &[&info], mode).unwrap_err();
            let text = format!("{error:?}");
            assert!(
                text.starts_with(&format!("`src` cannot be {verb}: ")),
                "{text}"
            );
        }
    }

    #[test]
    fn the_variable_has_one_value() {
        assert!(matches!(Mode::of(None), Ok(Mode::Compare)));
        assert!(matches!(
            Mode::of(Some(OsStr::new("write"))),
            Ok(Mode::Write)
        ));
        assert!(Mode::of(Some(OsStr::new("Write"))).is_err());
    }
}
