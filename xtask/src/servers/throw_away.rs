//! A server of our own that ends with us.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::cargo::succeeds;
use crate::error::Error;
use crate::servers::install::{self, Purpose};
use crate::servers::programs::Programs;
use crate::servers::user::User;
use crate::servers::wire::Target;
use crate::servers::{Install, Kind, Site};

/// How long a server may take to be ready, on a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(2);

/// How long a server may take to stop, before it is killed: as long as the reaper gives it.
const STOP: Duration = Duration::from_secs(5);

/// Other ports are tried when somebody is quicker than we are; a killed server's children may
/// hold what the next one needs for a moment.
const TRIES: u32 = 5;

/// How the variables begin that tell servers, and programs that belong to them, what to do.
const FOREIGN: [&str; 8] = [
    "ERL_",
    "MARIADB_",
    "MOTO_",
    "MYSQL_",
    "OTEL_",
    "PG",
    "RABBITMQ_",
    "SCHEMA_REGISTRY",
];

const PORTS: Range<u16> = 20_000..32_000;

/// The longest directory in which a unix socket still has room for its name.
const LONGEST_DIRECTORY: usize = 60;

/// Waits for the end of input, which comes with the end of whoever started it, however that
/// came about; then ends the server and removes its directory.
const REAPER: &str = r#"
read -r _
pid=$(cat "$1/pid")
if [ -n "$pid" ]; then
    kill -s "$2" -- "-$pid"
    tries=0
    while kill -s 0 -- "-$pid" && [ "$tries" -lt 100 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
    kill -s KILL -- "-$pid"
fi
rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }
"#;

/// A server that only its owner uses, for tests that crash it or need it to themselves.
///
/// It has its own directory, port and data, which go when the value is dropped, and also when
/// the process ends in any other way.
pub struct ThrowAway {
    kind: &'static Kind,
    programs: Programs,
    user: User,
    directory: PathBuf,
    port: u16,
    /// What is added to its command line.
    arguments: Vec<String>,
    server: Option<Child>,
    reaper: Child,
}

impl ThrowAway {
    /// Starts a server from installed programs, which are installed first where that is allowed.
    ///
    /// # Errors
    ///
    /// One sentence that says what is missing or what the server said.
    pub fn start(kind: &'static Kind) -> Result<Self, Error> {
        Self::start_when(kind, Install::from_environment())
    }

    pub(super) fn start_when(kind: &'static Kind, install: Install) -> Result<Self, Error> {
        let mut server = Self::prepared(kind, install)?;
        server.launch(free_port)?;
        Ok(server)
    }

    /// One that has its files, and does not run yet.
    pub(super) fn prepared(kind: &'static Kind, install: Install) -> Result<Self, Error> {
        let server = Self::new(kind, install)?;
        if let Some(prepare) = kind.prepare {
            server.make(|site| prepare(&site))?;
        }
        Ok(server)
    }

    /// Another one with a copy of the data. None of the two runs yet.
    pub(super) fn copy(&self) -> Result<Self, Error> {
        let copy = Self::new(self.kind, Install::Refused)?;
        copy.make(|site| {
            let mut copy = Command::new("cp");
            copy.arg("-a").arg(self.data()).arg(site.directory);
            copy
        })?;
        Ok(copy)
    }

    /// Starts one that does not run, with these arguments now and after a [`restart`](Self::restart).
    pub(super) fn start_with(&mut self, arguments: Vec<String>) -> Result<(), Error> {
        self.arguments = arguments;
        match self.port {
            0 => self.launch(free_port),
            port => self.launch(|| Ok(port)),
        }
    }

    fn new(kind: &'static Kind, install: Install) -> Result<Self, Error> {
        let programs = find_or_install(kind, install)?;
        let user = User::running(kind)?;
        let directory = new_directory(&user).map_err(|error| {
            Error::new(format!(
                "cannot make a directory for {}: {error}",
                kind.name
            ))
        })?;
        let reaper = reaper(kind, &directory)
            .inspect_err(|_| drop(fs::remove_dir_all(&directory)))
            .map_err(|error| Error::new(format!("cannot start a shell: {error}")))?;
        Ok(Self {
            kind,
            programs,
            user,
            directory,
            port: 0,
            arguments: Vec::new(),
            server: None,
            reaper,
        })
    }

    /// The URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        (self.kind.url)(self.port)
    }

    /// Where the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// Where its files are, its `log` among them.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Kills the server as a crash would: it has no time for anything.
    ///
    /// What it had committed is there again after [`restart`](Self::restart), unless it is of a
    /// kind that keeps everything in memory.
    pub fn crash(&mut self) {
        self.end();
        let _ = fs::write(self.pid_file(), "");
        self.wait_for_port();
    }

    /// Stops the server at once, by its own signal for that: for `PostgreSQL` it is an immediate
    /// shutdown, which ends all sessions and leaves the recovery to the next start.
    pub fn stop(&mut self) {
        if let Some(server) = &self.server {
            signal_group(server.id(), self.kind.stop_signal);
        }
        let end = Instant::now() + STOP;
        while self.is_running() && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
        self.crash();
    }

    /// Starts the server again, on the same port with the same data, after a crash if it runs.
    ///
    /// # Errors
    ///
    /// One sentence with what the server said.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.crash();
        let port = self.port;
        self.launch(|| Ok(port))
    }

    fn end(&mut self) {
        if let Some(mut server) = self.server.take() {
            if matches!(server.try_wait(), Ok(None)) {
                kill_group(server.id());
            }
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    /// Waits until the last of the server's processes has let go of it.
    fn wait_for_port(&self) {
        let end = Instant::now() + Duration::from_secs(5);
        while TcpListener::bind(self.address()).is_err() && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Runs what makes its files.
    fn make(&self, command: impl Fn(Site<'_>) -> Command) -> Result<(), Error> {
        let status = self
            .site()
            .and_then(|site| self.spawn(&mut command(site)))
            .and_then(|mut child| child.wait());
        let forgotten = fs::write(self.pid_file(), "");
        match status.and_then(|status| forgotten.map(|()| status)) {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(self.failure(&status.to_string())),
            Err(error) => Err(self.failure(&error.to_string())),
        }
    }

    fn launch(&mut self, port: impl Fn() -> io::Result<u16>) -> Result<(), Error> {
        let end = Instant::now() + PATIENCE;
        for _ in 0..TRIES {
            self.port = port().map_err(|error| self.failure(&error.to_string()))?;
            self.serve()
                .map_err(|error| self.failure(&error.to_string()))?;
            let target = Target::parse(self.kind, &self.url()).map_err(|why| self.failure(&why))?;
            while self.is_running() {
                if self.greet(&target).is_ok() {
                    return Ok(());
                }
                if Instant::now() > end {
                    return Err(self.failure("it is not ready after two minutes"));
                }
                thread::sleep(Duration::from_millis(20));
            }
            thread::sleep(Duration::from_millis(200));
        }
        Err(self.failure("it ends at once"))
    }

    fn serve(&mut self) -> io::Result<()> {
        let mut command = (self.kind.serve)(&self.site()?);
        command.args(&self.arguments);
        self.server = Some(self.spawn(&mut command)?);
        Ok(())
    }

    /// Starts a program in a process group of its own, which the reaper knows.
    fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let mut child = self.own(command)?.process_group(0).spawn()?;
        if let Err(error) = fs::write(self.pid_file(), child.id().to_string()) {
            child.kill()?;
            child.wait()?;
            return Err(error);
        }
        Ok(child)
    }

    fn is_running(&mut self) -> bool {
        self.server
            .as_mut()
            .is_some_and(|server| matches!(server.try_wait(), Ok(None)))
    }

    fn greet(&self, target: &Target) -> io::Result<()> {
        let mut stream = TcpStream::connect(self.address())?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        (self.kind.greet)(&mut stream, target)
    }

    fn site(&self) -> io::Result<Site<'_>> {
        Ok(Site {
            directory: &self.directory,
            port: self.port,
            more_ports: [free_port()?, free_port()?],
            programs: &self.programs,
        })
    }

    /// Makes a command one of this server's: user, directory and log.
    fn own<'c>(&self, command: &'c mut Command) -> io::Result<&'c mut Command> {
        let log = File::options().append(true).create(true).open(self.log())?;
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy();
            let is_foreign = FOREIGN.iter().any(|prefix| name.starts_with(prefix));
            if is_foreign && !command.get_envs().any(|(ours, _)| ours == &*name) {
                command.env_remove(&*name);
            }
        }
        self.user.run(command);
        command
            .current_dir(&self.directory)
            .env("HOME", &self.directory)
            .env("LC_ALL", "C");
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Ok(command)
    }

    /// Where databases keep theirs.
    pub(super) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    fn pid_file(&self) -> PathBuf {
        self.directory.join("pid")
    }

    fn failure(&self, what: &str) -> Error {
        let log = fs::read(self.log()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let last = log
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("nothing");
        let (name, place) = (self.kind.name, self.directory.display());
        Error::new(format!(
            "a throw-away {name} in {place} failed: {what}; it said last: {last}"
        ))
    }
}

impl Drop for ThrowAway {
    fn drop(&mut self) {
        // The reaper's input ends here, and it does the rest; unless somebody ended it.
        drop(self.reaper.stdin.take());
        while self.is_running() && matches!(self.reaper.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(5));
        }
        self.end();
        let _ = self.reaper.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn find_or_install(kind: &'static Kind, install: Install) -> Result<Programs, Error> {
    if let Some(programs) = Programs::find(kind) {
        return Ok(programs);
    }
    install::install(&[kind], Purpose::ThrowAway, install)?;
    Programs::find(kind).ok_or_else(|| {
        Error::new(format!(
            "{} is installed, but has no {}",
            kind.name,
            kind.programs.join(", ")
        ))
    })
}

fn new_directory(user: &User) -> io::Result<PathBuf> {
    let parent = parent(env::temp_dir());
    for number in 0..u32::MAX {
        let directory = parent.join(format!("idempotent-{}-{number}", process::id()));
        match DirBuilder::new().mode(0o700).create(&directory) {
            Ok(()) => return user.own(&directory).map(|()| directory),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn parent(temporary: PathBuf) -> PathBuf {
    let is_short = temporary.as_os_str().len() <= LONGEST_DIRECTORY;
    if is_short {
        temporary
    } else {
        PathBuf::from("/tmp")
    }
}

fn reaper(kind: &Kind, directory: &Path) -> io::Result<Child> {
    fs::write(directory.join("pid"), "")?;
    let mut command = Command::new("sh");
    command
        .args(["-c", REAPER, "reaper"])
        .arg(directory)
        .arg(kind.stop_signal);
    // A group of its own: Ctrl-C ends us, and not who cleans up after us.
    command.process_group(0).current_dir("/");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Signals a server, and the processes that it has started and keeps in its group.
fn signal_group(leader: u32, signal: &str) {
    let script = r#"kill -s "$1" -- "-$2""#;
    let leader = leader.to_string();
    succeeds(Command::new("sh").args(["-c", script, "kill", signal, &leader]));
}

/// Kills a server with the processes that it has started. Those of `PostgreSQL` have groups of
/// their own, and would answer clients until they see that it is gone.
fn kill_group(leader: u32) {
    let script = r#"kill -s STOP "$1"; kill -s KILL -- "-$1" $(cat "/proc/$1/task/$1/children")"#;
    let leader = leader.to_string();
    succeeds(Command::new("sh").args(["-c", script, "kill", &leader]));
}

/// A port below those that clients get, so that it is still free after a crash. Every process
/// begins somewhere else, so that two do not find the same one.
pub(super) fn free_port() -> io::Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in PORTS {
        let number = process::id()
            .wrapping_mul(32)
            .wrapping_add(NEXT.fetch_add(1, Relaxed));
        let offset = u16::try_from(number % u32::from(PORTS.end - PORTS.start));
        let port = PORTS.start + offset.map_err(io::Error::other)?;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_not_given_twice() -> io::Result<()> {
        let (one, other) = (free_port()?, free_port()?);
        assert_ne!(one, other);
        assert!(PORTS.contains(&one) && PORTS.contains(&other));
        Ok(())
    }

    #[test]
    fn a_directory_too_long_for_a_socket_is_not_used() {
        assert_eq!(parent("/var/tmp".into()), Path::new("/var/tmp"));
        assert_eq!(
            parent(format!("/{}", "x".repeat(80)).into()),
            Path::new("/tmp")
        );
    }
}
