//! Runs the two programs as a user does.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use sqlx::mysql::MySqlConnection;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection as _, query_scalar, raw_sql};

const QUICKSTART: &str = env!("CARGO_BIN_EXE_quickstart");
const WEBHOOKS: &str = env!("CARGO_BIN_EXE_webhooks");

const FIRST: &str = "deliveries=16 processed=10 duplicates=6 failed=0";
const SECOND: &str = "deliveries=16 processed=0 duplicates=16 failed=0";

// The main job.

#[test]
fn first_run_handles_each_event_once_per_channel() {
    let user = User::new("first_run");
    let run = user.run(QUICKSTART, &[]);
    assert_eq!((run.last_line(), run.status), (FIRST, Some(0)));
    assert_eq!(run.errors, "");
    assert_eq!(
        number(&user.url(), "SELECT count(*) FROM notifications"),
        10
    );
    assert_eq!(
        number(&user.url(), "SELECT count(*) FROM processed_messages"),
        10
    );
}

#[test]
fn second_run_finds_duplicates_only() {
    let user = User::new("second_run");
    user.run(QUICKSTART, &[]);
    let run = user.run(QUICKSTART, &[]);
    assert_eq!((run.last_line(), run.status), (SECOND, Some(0)));
    assert!(!run.output.contains("crashed"), "{}", run.output);
    assert_eq!(
        number(&user.url(), "SELECT count(*) FROM notifications"),
        10
    );
}

#[test]
fn crashed_delivery_comes_again_and_is_processed() {
    let user = User::new("crash");
    let run = user.run(QUICKSTART, &[]);
    let rows: Vec<_> = run.rows("107").collect();
    let [crashed, again] = rows[..] else {
        panic!("{}", run.output);
    };
    assert!(
        crashed.contains("crashed before commit, nothing kept"),
        "{crashed}"
    );
    assert!(crashed.ends_with("none"), "{crashed}");
    assert!(
        again.starts_with("107 again") && again.contains("processed"),
        "{again}"
    );
    assert!(again.ends_with("ack"), "{again}");
}

#[test]
fn coarse_key_is_compared_with_what_is_there() {
    let user = User::new("coarse_key");
    let run = user.run(QUICKSTART, &[]);
    let remark = "With the key `event.id` alone, 4 of the 10 would have been swallowed.";
    assert!(run.output.contains(remark), "{}", run.output);

    let user = User::new("no_fan_out");
    let run = user.feed(QUICKSTART, &[], &[&transfer(1, "tr-1", "PUSH")]);
    assert!(!run.output.contains("swallowed"), "{}", run.output);
}

#[test]
fn database_of_another_name_is_made() {
    let user = User::new("other_name");
    let run = user.run(QUICKSTART, &["--database", "sqlite:other.db"]);
    assert_eq!(run.last_line(), FIRST);
    assert!(user.folder.join("other.db").exists());
    assert!(!user.folder.join("quickstart.db").exists());
}

#[test]
fn webhooks_are_noted_once() {
    let user = User::new("webhooks");
    let first = user.run(WEBHOOKS, &[]);
    assert_eq!(
        first.last_line(),
        "deliveries=68 processed=58 duplicates=10 failed=0"
    );
    let second = user.run(WEBHOOKS, &[]);
    assert_eq!(
        second.last_line(),
        "deliveries=68 processed=0 duplicates=68 failed=0"
    );
    assert_eq!((first.status, second.status), (Some(0), Some(0)));

    let url = format!("sqlite:{}", user.folder.join("webhooks.db").display());
    let named = "SELECT count(*) FROM webhook_events \
        WHERE event = 'push' AND repository = 'Codertocat/Hello-World' AND sender = 'Codertocat'";
    assert_eq!(number(&url, named), 1);
    let of_organizations = "SELECT count(*) FROM webhook_events WHERE repository IS NULL";
    assert_eq!(number(&url, of_organizations), 10);
}

#[test]
fn webhook_is_one_by_delivery_and_event() {
    let user = User::new("webhook_grain");
    let webhook = |delivery, event| {
        format!(r#"{{"delivery":"{delivery}","event":"{event}","payload":{{}}}}"#)
    };
    let run = user.feed(
        WEBHOOKS,
        &[],
        &[
            &webhook("d7601b67-d0c8-519c-a6b8-4e96b91bd88d", "push"),
            &webhook("d7601b67-d0c8-519c-a6b8-4e96b91bd88d", "issues"),
            &webhook("D7601B67-D0C8-519C-A6B8-4E96B91BD88D", "push"),
            &webhook("no-uuid", "push"),
        ],
    );
    assert_eq!(
        run.last_line(),
        "deliveries=4 processed=2 duplicates=1 failed=1"
    );
    assert!(run.errors.starts_with("line 4: "), "{}", run.errors);
}

// The input.

#[test]
fn bad_lines_are_named_and_the_rest_goes_on() {
    let user = User::new("bad_lines");
    let (good, other) = (transfer(1, "tr-1", "EMAIL"), transfer(2, "tr-2", "PUSH"));
    let fax = transfer(3, "tr-3", "FAX");
    let no_id = r#"{"delivery":4,"event":{"account":"A","amount":1},"channel":"PUSH"}"#;
    let unknown_field = transfer(5, "tr-5", "PUSH").replace("{\"id\"", "{\"note\":\"x\",\"id\"");
    let lines = [
        &*good,
        "",
        "no JSON",
        &fax,
        no_id,
        "[1]",
        &unknown_field,
        &other,
    ];
    let run = user.feed(QUICKSTART, &[], &lines);

    assert_eq!(
        run.last_line(),
        "deliveries=7 processed=3 duplicates=0 failed=4"
    );
    assert_eq!(run.status, Some(1));
    let errors: Vec<_> = run.errors.lines().collect();
    assert_eq!(errors.len(), 4, "{}", run.errors);
    for (error, start) in errors.iter().zip([
        "line 3: not a JSON object",
        "line 4: unknown channel `FAX`, expected EMAIL or PUSH",
        "line 5: missing field `id`",
        "line 6: not a JSON object",
    ]) {
        assert!(error.starts_with(start), "{error}");
    }
    for number in [3, 4, 5, 6] {
        let row = run.rows(&format!("line {number} ")).next().expect("a row");
        assert!(
            row.contains("bad line: ") && row.ends_with("reject"),
            "{row}"
        );
    }
}

#[test]
fn bytes_that_are_no_text_are_a_bad_line() {
    let user = User::new("no_text");
    let mut bytes = b"\xef\xbb\xbf".to_vec(); // as some editors begin a file
    bytes.extend(transfer(1, "tr-1", "EMAIL").replace('\n', "").bytes());
    bytes.extend(b"\r\n{\"delivery\":2,\"event\":{\"id\":\"\xff\"}}\r\n\r\n");
    bytes.extend(transfer(3, "tr-1", "EMAIL").bytes()); // without a line's end
    fs::write(user.folder.join("events"), bytes).expect("the file is written");
    let run = user.run(QUICKSTART, &["--events", "events"]);
    assert_eq!(
        run.last_line(),
        "deliveries=3 processed=1 duplicates=1 failed=1"
    );
    assert!(run.errors.starts_with("line 2: "), "{}", run.errors);
}

#[test]
fn event_with_an_empty_id_is_rejected() {
    let user = User::new("empty_id");
    let lines = [&*transfer(1, "", "EMAIL"), &transfer(2, "", "EMAIL")];
    let run = user.feed(QUICKSTART, &[], &lines);
    assert_eq!(
        run.last_line(),
        "deliveries=2 processed=0 duplicates=0 failed=2"
    );
    assert_eq!(run.status, Some(1));
    assert!(run.errors.contains("line 2: "), "{}", run.errors);
    assert!(run.errors.contains("`event.id` is empty"), "{}", run.errors);
    assert!(
        run.rows("1 ").all(|row| row.ends_with("reject")),
        "{}",
        run.output
    );
}

#[test]
fn row_without_its_key_is_kept_out_by_the_second_line_of_defence() {
    let user = User::new("second_line");
    user.feed(QUICKSTART, &[], &[&transfer(1, "tr-1", "EMAIL")]);
    execute(&user.url(), "DELETE FROM processed_messages");
    let run = user.feed(QUICKSTART, &[], &[&transfer(2, "tr-1", "EMAIL")]);
    assert_eq!(
        run.last_line(),
        "deliveries=1 processed=0 duplicates=0 failed=1"
    );
    assert!(
        run.rows("2 ").all(|row| row.ends_with("requeue")),
        "{}",
        run.output
    );
    assert_eq!(
        number(&user.url(), "SELECT count(*) FROM processed_messages"),
        0
    );
}

#[test]
fn standard_input_is_handled_line_by_line() {
    let user = User::new("stream");
    let mut child = user.start(QUICKSTART, &["--events", "-"]);
    let mut input = child.stdin.take().expect("a pipe");
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut rows = output.lines().map(|line| line.expect("text"));
    let heading = rows.find(|line| line.starts_with("---"));
    assert!(heading.is_some());
    // Each line is sent when the row of the one before is there.
    for (number, result) in [(1, "processed"), (2, "duplicate"), (3, "duplicate")] {
        writeln!(input, "{}", transfer(number, "tr-1", "EMAIL")).expect("it reads");
        let row = rows.next().expect("a row");
        assert!(
            row.starts_with(&number.to_string()) && row.contains(result),
            "{row}"
        );
    }
    drop(input);
    assert_eq!(
        rows.last().as_deref(),
        Some("deliveries=3 processed=1 duplicates=2 failed=0")
    );
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn empty_input_is_no_failure() {
    let user = User::new("empty");
    fs::write(user.folder.join("events"), "").expect("the file is written");
    let run = user.run(QUICKSTART, &["--events", "events"]);
    let none = "deliveries=0 processed=0 duplicates=0 failed=0";
    assert_eq!((run.last_line(), run.status), (none, Some(0)));
}

#[test]
fn ten_thousand_lines_stay_readable() {
    let user = User::new("ten_thousand");
    let mut text = String::new();
    for number in 0..10_000 {
        let id = format!("transfer-{:06}-of-a-bank-with-long-ids", number % 1_000);
        text += &transfer(number, &id, "PUSH");
        text += "\n";
    }
    fs::write(user.folder.join("events"), text).expect("the file is written");
    let run = user.run(QUICKSTART, &["--events", "events"]);
    assert_eq!(
        run.last_line(),
        "deliveries=10000 processed=1000 duplicates=9000 failed=0"
    );
    let widest = run.output.lines().map(|line| line.chars().count()).max();
    assert_eq!(widest, Some(79));
    // Nobody watches: no counter.
    assert_eq!(run.errors, "");
}

#[test]
fn output_that_nobody_reads_ends_it_quietly() {
    let user = User::new("closed");
    let mut child = user.start(QUICKSTART, &["--events", "-"]);
    let mut input = child.stdin.take().expect("a pipe");
    drop(child.stdout.take());
    // It may end before it has read the line.
    let _ = writeln!(input, "{}", transfer(1, "tr-1", "EMAIL"));
    drop(input);
    let run = Run::of(child);
    assert_eq!((&*run.errors, run.status), ("", Some(1)));
}

// The options.

#[test]
fn fresh_starts_from_nothing() {
    let user = User::new("fresh");
    user.run(QUICKSTART, &[]);
    let run = user.run(QUICKSTART, &["--fresh"]);
    assert_eq!((run.last_line(), run.status), (FIRST, Some(0)));
    // Where there is nothing yet:
    let run = user.run(QUICKSTART, &["--fresh", "--database", "sqlite:new.db"]);
    assert_eq!(run.last_line(), FIRST);
}

#[test]
fn fresh_deletes_no_file_of_others() {
    let user = User::new("fresh_of_others");
    fs::write(user.folder.join("notes"), "my notes").expect("the file is written");
    let run = user.run(QUICKSTART, &["--fresh", "--database", "sqlite:notes"]);
    assert_eq!(run.status, Some(2), "{}", run.errors);
    let notes = fs::read_to_string(user.folder.join("notes"));
    assert_eq!(notes.ok().as_deref(), Some("my notes"));

    user.run(QUICKSTART, &[]);
    execute(&user.url(), "CREATE TABLE accounts (id integer)");
    let run = user.run(QUICKSTART, &["--fresh"]);
    assert_eq!(run.status, Some(2));
    assert!(
        run.errors.contains("it holds tables of others"),
        "{}",
        run.errors
    );
    assert_eq!(
        number(&user.url(), "SELECT count(*) FROM notifications"),
        10
    );
}

#[test]
fn missing_file_is_named_and_nothing_touched() {
    let user = User::new("missing_file");
    let run = user.run(QUICKSTART, &["--events", "nope.jsonl"]);
    assert_eq!((&*run.output, run.status), ("", Some(2)));
    assert!(run.errors.contains("`nope.jsonl`"), "{}", run.errors);
    assert!(!user.folder.join("quickstart.db").exists());

    user.run(QUICKSTART, &[]);
    let run = user.run(QUICKSTART, &["--fresh", "--events", "nope.jsonl"]);
    assert_eq!(run.status, Some(2));
    assert_eq!(
        number(&user.url(), "SELECT count(*) FROM notifications"),
        10
    );
}

#[test]
fn wrong_options_are_usage_errors() {
    let user = User::new("options");
    for (options, word) in [
        (&["--frsh"][..], "--frsh"),
        (&["events.jsonl"], "events.jsonl"),
        (&["--events"], "--events"),
        (&["--fresh=yes"], "--fresh"),
        (&["--events", "."], "folder"),
        (&["--database", "quickstart.db"], "sqlite:FILE"),
        (&["--database", "redis://localhost"], "sqlite:FILE"),
        (&["--database", "sqlite::memory:"], "sqlite:FILE"),
        (&["--database", "sqlite:no/such/folder.db"], "open"),
        (
            &["--database", "postgres://user:secret@127.0.0.1:1/x"],
            "refused",
        ),
    ] {
        let run = user.run(QUICKSTART, options);
        assert_eq!((&*run.output, run.status), ("", Some(2)), "{options:?}");
        assert!(run.errors.starts_with("quickstart: "), "{}", run.errors);
        assert!(run.errors.contains(word), "{options:?}: {}", run.errors);
        assert!(!run.errors.contains("secret"), "{}", run.errors);
    }
}

#[test]
fn help_fits_a_terminal() {
    let user = User::new("help");
    for program in [QUICKSTART, WEBHOOKS] {
        let run = user.run(program, &["--help"]);
        assert_eq!(run.status, Some(0));
        for option in ["--events", "--database", "--fresh", "Exit status"] {
            assert!(run.output.contains(option), "{}", run.output);
        }
        for line in run.output.lines() {
            assert!(line.chars().count() < 80, "{line}");
        }
    }
}

// Servers.

mod postgres {
    use super::*;

    #[test]
    #[cfg_attr(not(has_postgres), ignore = "needs Postgres: run `cargo xtask test`")]
    fn both_programs_run_twice_and_afresh() {
        Fresh::new("IDEMPOTENT_POSTGRES_URL", "pg_twice").runs_twice_and_afresh();
    }

    #[test]
    #[cfg_attr(not(has_postgres), ignore = "needs Postgres: run `cargo xtask test`")]
    fn fresh_leaves_what_others_share() {
        Fresh::new("IDEMPOTENT_POSTGRES_URL", "pg_share").leaves_what_others_share();
    }
}

mod mariadb {
    use super::*;

    #[test]
    #[cfg_attr(not(has_mariadb), ignore = "needs MariaDB: run `cargo xtask test`")]
    fn both_programs_run_twice_and_afresh() {
        Fresh::new("IDEMPOTENT_MARIADB_URL", "maria_twice").runs_twice_and_afresh();
    }

    #[test]
    #[cfg_attr(not(has_mariadb), ignore = "needs MariaDB: run `cargo xtask test`")]
    fn fresh_leaves_what_others_share() {
        Fresh::new("IDEMPOTENT_MARIADB_URL", "maria_share").leaves_what_others_share();
    }

    #[test]
    #[cfg_attr(not(has_mariadb), ignore = "needs MariaDB: run `cargo xtask test`")]
    fn ids_that_differ_in_case_are_two() {
        let database = Fresh::new("IDEMPOTENT_MARIADB_URL", "maria_case");
        let user = User::new("maria_case");
        let url = database.url.replacen("mysql:", "mariadb:", 1);
        let lines = [&*transfer(1, "tr-1", "PUSH"), &transfer(2, "TR-1", "PUSH")];
        let run = user.feed(QUICKSTART, &["--database", &url], &lines);
        assert_eq!(
            run.last_line(),
            "deliveries=2 processed=2 duplicates=0 failed=0"
        );
    }
}

impl Fresh {
    fn runs_twice_and_afresh(&self) {
        let user = User::new(&self.name);
        let database = ["--database", &self.url];
        for (options, last) in [(&[][..], FIRST), (&[], SECOND), (&["--fresh"], FIRST)] {
            let run = user.run(QUICKSTART, &[&database, options].concat());
            assert_eq!(
                (run.last_line(), run.status),
                (last, Some(0)),
                "{}",
                run.errors
            );
            assert_eq!(run.output.contains("crashed"), last == FIRST);
        }
        for last in [
            "deliveries=68 processed=58 duplicates=10 failed=0",
            "deliveries=68 processed=0 duplicates=68 failed=0",
        ] {
            assert_eq!(user.run(WEBHOOKS, &database).last_line(), last);
        }
        assert_eq!(self.number("SELECT count(*) FROM notifications"), 10);
        assert_eq!(self.number("SELECT count(*) FROM processed_messages"), 68);
    }

    fn leaves_what_others_share(&self) {
        let user = User::new(&self.name);
        let database = ["--database", &self.url, "--fresh"];
        user.run(QUICKSTART, &database);
        self.execute("UPDATE processed_messages SET scope = 'billing' WHERE scope = 'notify'");
        assert_eq!(user.run(QUICKSTART, &database).last_line(), FIRST);
        assert_eq!(
            self.number("SELECT count(*) FROM processed_messages WHERE scope = 'billing'"),
            10
        );

        self.execute("ALTER TABLE notifications ADD COLUMN sent_by varchar(9)");
        let run = user.run(QUICKSTART, &database);
        assert_eq!(run.status, Some(2), "{}", run.errors);
        assert!(run.errors.contains("columns of others"), "{}", run.errors);
        assert_eq!(self.number("SELECT count(*) FROM notifications"), 10);
    }
}

/// A database of its own on a server, dropped at the end.
struct Fresh {
    server: String,
    name: String,
    url: String,
}

impl Fresh {
    fn new(variable: &str, test: &str) -> Self {
        let server = std::env::var(variable)
            .unwrap_or_else(|_| panic!("{variable} is not set: run `cargo xtask test`"));
        let name = format!("idempotent_example_{test}_{}", std::process::id());
        execute(&server, &format!("CREATE DATABASE {name}"));
        let (front, parameters) = match server.split_once('?') {
            Some((front, parameters)) => (front, format!("?{parameters}")),
            None => (&*server, String::new()),
        };
        let authority = front.find("//").map_or(0, |start| start + "//".len());
        let end = front[authority..]
            .find('/')
            .map_or(front.len(), |slash| authority + slash);
        let url = format!("{}/{name}{parameters}", &front[..end]);
        Self { server, name, url }
    }

    fn execute(&self, sql: &str) {
        execute(&self.url, sql);
    }

    fn number(&self, sql: &str) -> i64 {
        number(&self.url, sql)
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let force = if self.server.starts_with("postgres") {
            " WITH (FORCE)"
        } else {
            ""
        };
        execute(&self.server, &format!("DROP DATABASE {}{force}", self.name));
    }
}

/// The same on each kind of connection.
macro_rules! on {
    ($url:expr, $conn:ident => $work:expr) => {
        block_on(async {
            let url: &str = $url;
            match url.split(':').next() {
                Some("sqlite") => {
                    let mut $conn = SqliteConnection::connect(url).await?;
                    $work
                }
                Some("mysql" | "mariadb") => {
                    let mut $conn = MySqlConnection::connect(url).await?;
                    $work
                }
                _ => {
                    let mut $conn = PgConnection::connect(url).await?;
                    $work
                }
            }
        })
    };
}

fn execute(url: &str, sql: &str) {
    on!(url, conn => raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await.map(drop));
}

fn number(url: &str, sql: &str) -> i64 {
    on!(url, conn => query_scalar(AssertSqlSafe(sql)).fetch_one(&mut conn).await)
}

fn block_on<T>(work: impl Future<Output = sqlx::Result<T>>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let result = runtime.expect("a runtime").block_on(work);
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// Somebody in an empty folder.
struct User {
    folder: PathBuf,
}

impl User {
    fn new(test: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("examples")
            .join(test);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("the folder is made");
        Self { folder }
    }

    /// The database of `quickstart`.
    fn url(&self) -> String {
        format!("sqlite:{}", self.folder.join("quickstart.db").display())
    }

    fn start(&self, program: &str, options: &[&str]) -> Child {
        Command::new(program)
            .args(options)
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts")
    }

    fn run(&self, program: &str, options: &[&str]) -> Run {
        Run::of(self.start(program, options))
    }

    /// Runs it on lines that come by the standard input.
    fn feed(&self, program: &str, options: &[&str], lines: &[&str]) -> Run {
        let mut child = self.start(program, &[&["--events", "-"], options].concat());
        let mut input = child.stdin.take().expect("a pipe");
        let text = lines.join("\n");
        input.write_all(text.as_bytes()).expect("it reads");
        drop(input);
        Run::of(child)
    }
}

/// What a run has left.
struct Run {
    output: String,
    errors: String,
    status: Option<i32>,
}

impl Run {
    fn of(child: Child) -> Self {
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Self {
            output: text(output.stdout),
            errors: text(output.stderr),
            status: output.status.code(),
        }
    }

    fn last_line(&self) -> &str {
        self.output.lines().last().unwrap_or(&self.errors)
    }

    fn rows(&self, start: &str) -> impl Iterator<Item = &str> {
        self.output
            .lines()
            .filter(move |line| line.starts_with(start))
    }
}

fn transfer(number: u32, id: &str, channel: &str) -> String {
    format!(
        r#"{{"delivery":{number},"event":{{"id":"{id}","account":"A","amount":1}},"channel":"{channel}"}}"#
    )
}
