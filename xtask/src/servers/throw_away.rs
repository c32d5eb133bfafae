//! A server of our own that ends with us.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::cargo::succeeds;
use crate::error::Error;
use crate::servers::leash::{forget, leashed, reaper};
use crate::servers::ports::Port;
use crate::servers::programs::Programs;
use crate::servers::user::User;
use crate::servers::wire::Target;
use crate::servers::{Install, Kind, Site, install};

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

/// The longest directory in which a unix socket still has room for its name.
const LONGEST_DIRECTORY: usize = 60;

/// A server that only its owner uses, for tests that crash it or need it to themselves.
///
/// It has its own directory, port and data, which go when the value is dropped, and also when
/// the process ends in any other way.
pub struct ThrowAway {
    kind: &'static Kind,
    programs: Programs,
    user: User,
    directory: PathBuf,
    port: Port,
    /// Held as long as the server that was told of them.
    more_ports: [Port; 2],
    /// What is added to its command line.
    arguments: Vec<String>,
    server: Option<Child>,
    reaper: Child,
}

/// Where a server is to listen when it could not.
#[derive(Clone, Copy, PartialEq)]
enum Again {
    Elsewhere,
    There,
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
        server.launch(Again::Elsewhere)?;
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
        self.launch(Again::There)
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
        let remove = |_: &_| drop(fs::remove_dir_all(&directory));
        let no_port = |error| Error::new(format!("there is no port for {}: {error}", kind.name));
        let [port, one, other] = ports().inspect_err(remove).map_err(no_port)?;
        let reaper = reaper(&directory, &user, kind.stop_signal)
            .inspect_err(remove)
            .map_err(|error| Error::new(format!("cannot start a shell: {error}")))?;
        Ok(Self {
            kind,
            programs,
            user,
            directory,
            port,
            more_ports: [one, other],
            arguments: Vec::new(),
            server: None,
            reaper,
        })
    }

    /// The URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        (self.kind.url)(self.port.number())
    }

    /// Where the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port.number()))
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
        let _ = forget(&self.directory);
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
        self.launch(Again::There)
    }

    fn end(&mut self) {
        if let Some(mut server) = self.server.take() {
            // Also when it is dead: its children may not be.
            kill_group(server.id());
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
            .spawn(&mut command(self.site()))
            .and_then(|child| finish(child, PATIENCE));
        let forgotten = forget(&self.directory);
        match status.and_then(|status| forgotten.map(|()| status)) {
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(Some(status)) => Err(self.failure(&status.to_string())),
            Ok(None) => Err(self.failure("its files are not made after two minutes")),
            Err(error) => Err(self.failure(&error.to_string())),
        }
    }

    fn launch(&mut self, again: Again) -> Result<(), Error> {
        let end = Instant::now() + PATIENCE;
        for tries in 0..TRIES {
            if tries > 0 {
                thread::sleep(Duration::from_millis(200));
                self.move_on(again)
                    .map_err(|error| self.failure(&error.to_string()))?;
            }
            self.serve()
                .map_err(|error| self.failure(&error.to_string()))?;
            let target = Target::parse(self.kind, &self.url()).map_err(|why| self.failure(&why))?;
            while self.is_running() {
                // Nobody else answers for it once it has listened in vain.
                if self.greet(&target).is_ok() && self.is_running() {
                    return Ok(());
                }
                if Instant::now() > end {
                    return Err(self.failure("it is not ready after two minutes"));
                }
                thread::sleep(Duration::from_millis(20));
            }
            self.end();
        }
        Err(self.failure("it ends at once"))
    }

    /// Takes other ports, if need be also for clients.
    fn move_on(&mut self, again: Again) -> io::Result<()> {
        let [port, more_ports @ ..] = ports()?;
        self.more_ports = more_ports;
        if again == Again::Elsewhere {
            self.port = port;
        }
        Ok(())
    }

    fn serve(&mut self) -> io::Result<()> {
        let mut command = (self.kind.serve)(&self.site());
        command.args(&self.arguments);
        self.server = Some(self.spawn(&mut command)?);
        Ok(())
    }

    fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        self.own(&mut leashed(command, &self.directory))?.spawn()
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

    fn site(&self) -> Site<'_> {
        Site {
            directory: &self.directory,
            port: self.port.number(),
            more_ports: self.more_ports.each_ref().map(Port::number),
            programs: &self.programs,
        }
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
            .env("LC_ALL", "C")
            // MariaDB empties it of what others seem to have left.
            .env("TMPDIR", &self.directory);
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
    install::install(&[kind], install)?;
    Programs::find(kind).ok_or_else(|| {
        Error::new(format!(
            "{} is installed, but has no {}",
            kind.name,
            kind.programs.join(", ")
        ))
    })
}

fn new_directory(user: &User) -> io::Result<PathBuf> {
    let parent = parent(env::temp_dir(), user);
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

/// Where a directory can be that has room for a socket, and that the user can reach.
fn parent(temporary: PathBuf, user: &User) -> PathBuf {
    let is_short = temporary.as_os_str().len() <= LONGEST_DIRECTORY;
    let is_reached = match user {
        User::Ourselves => true,
        User::Other { .. } => everybody_may_pass(&temporary),
    };
    if is_short && is_reached {
        temporary
    } else {
        PathBuf::from("/tmp")
    }
}

fn everybody_may_pass(directory: &Path) -> bool {
    let passes = |part: &Path| {
        part.metadata()
            .is_ok_and(|found| found.permissions().mode() & 0o001 != 0)
    };
    directory
        .canonicalize()
        .is_ok_and(|directory| directory.ancestors().all(passes))
}

fn ports() -> io::Result<[Port; 3]> {
    Ok([Port::free()?, Port::free()?, Port::free()?])
}

/// Waits for the end of a process group's leader; `None`: it was killed, with its group,
/// because it took too long.
fn finish(mut child: Child, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let end = Instant::now() + patience;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(5));
    }
    kill_group(child.id());
    child.wait().map(|_| None)
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

#[cfg(test)]
mod tests {
    use super::*;

    use std::os::unix::process::CommandExt;

    const OTHER: fn() -> User = || User::Other {
        name: "other".to_owned(),
        uid: 1,
        gid: 1,
    };

    #[test]
    fn a_directory_too_long_for_a_socket_is_not_used() {
        assert_eq!(parent("/var/tmp".into(), &OTHER()), Path::new("/var/tmp"));
        assert_eq!(
            parent(format!("/{}", "x".repeat(80)).into(), &User::Ourselves),
            Path::new("/tmp")
        );
    }

    #[test]
    fn a_directory_that_others_cannot_reach_is_not_theirs() -> io::Result<()> {
        let closed = env::temp_dir().join(format!("idempotent-closed-{}", process::id()));
        DirBuilder::new().mode(0o700).create(&closed)?;
        let inside = closed.join("tmp");
        DirBuilder::new().mode(0o755).create(&inside)?;
        let found = [User::Ourselves, OTHER()].map(|user| parent(inside.clone(), &user));
        fs::remove_dir_all(&closed)?;
        assert_eq!(found, [inside, PathBuf::from("/tmp")]);
        Ok(())
    }

    #[test]
    fn what_takes_too_long_is_killed_with_its_children() -> io::Result<()> {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000; true"]).process_group(0);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take();
        assert_eq!(finish(child, Duration::from_millis(50))?, None);
        // It ends with the last who could write.
        io::copy(&mut stdout.ok_or(io::ErrorKind::NotFound)?, &mut io::sink())?;
        let done = Command::new("true").process_group(0).spawn()?;
        assert!(finish(done, PATIENCE)?.is_some_and(|status| status.success()));
        Ok(())
    }
}
