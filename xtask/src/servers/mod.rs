//! The servers that tests need: those named in the environment, else those on their usual
//! local ports, else throw-away ones.
//!
//! Adding a kind is one file like `postgres.rs` and its line in [`KINDS`].

mod apt;
mod check;
mod galera;
mod install;
mod kafka;
mod leash;
mod mariadb;
mod nats;
mod ports;
mod postgres;
mod programs;
mod pypi;
mod rabbitmq;
mod sqs;
mod standby;
mod throw_away;
mod user;
mod wire;

use std::env;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::panic;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::servers::programs::Programs;
use crate::servers::pypi::Package;
use crate::servers::user::User;
use crate::servers::wire::Target;

pub use crate::servers::galera::Galera;
pub(crate) use crate::servers::install::tools;
pub use crate::servers::kafka::KAFKA;
pub use crate::servers::mariadb::MARIADB;
pub use crate::servers::nats::NATS;
pub use crate::servers::postgres::{POSTGRES, POSTGRES_ON_DISK};
pub use crate::servers::rabbitmq::RABBITMQ;
pub use crate::servers::sqs::SQS;
pub use crate::servers::standby::Pair;
pub use crate::servers::throw_away::ThrowAway;

/// Every kind that the tests need.
pub const KINDS: [&Kind; 6] = [&KAFKA, &MARIADB, &NATS, &POSTGRES, &RABBITMQ, &SQS];

/// The kinds that clusters are made of, which tests start themselves.
const OF_CLUSTERS: [&Kind; 2] = [&galera::GALERA, &POSTGRES];

/// Tells tests that start throw-away servers themselves not to install any.
pub(crate) const NO_INSTALL: &str = "IDEMPOTENT_NO_INSTALL";

/// A kind of server, and all that is known about it here.
#[derive(Debug)]
pub struct Kind {
    /// Its name for a person.
    name: &'static str,
    /// The environment variable that names a server of this kind, for us and for the tests.
    variable: &'static str,
    usual_port: u16,
    /// The URL of a local server on a port.
    url: fn(u16) -> String,
    /// Who runs it when we are root, if that is not to be us.
    unix_user: Option<&'static str>,
    /// The server is the last.
    programs: &'static [&'static str],
    /// What the server is asked to see whether it runs at all; it answers and ends.
    proof: Option<&'static str>,
    /// Where programs are that are not in `PATH`; one `*` stands for the newest version.
    directories: &'static [&'static str],
    /// What else has to be there.
    libraries: &'static [&'static str],
    /// What is installed to have the programs.
    origin: Origin,
    /// Makes the files of a new server that does not make them itself.
    prepare: Option<fn(&Site) -> Command>,
    /// Is the server, in the foreground; it may have children in its process group.
    serve: fn(&Site) -> Command,
    /// Talks to the server at the other end until it is clear that it is one of this kind and
    /// ready for clients. The error says why not.
    greet: fn(&mut TcpStream, &Target) -> io::Result<()>,
    check: Check,
    /// The signal after which it ends at once and leaves nothing behind.
    stop_signal: &'static str,
}

/// Where programs come from.
#[derive(Debug)]
enum Origin {
    /// Packages of Debian, by apt-get.
    Debian(&'static [&'static str]),
    /// Packages of `PyPI`, by pip.
    Pypi(Package),
}

/// How it is found out whether a server that is not ours may be used.
#[derive(Debug)]
enum Check {
    /// By the greeting alone.
    Greeting,
    /// By a program that does what tests do.
    Program,
}

/// Where a throw-away server lives.
struct Site<'a> {
    directory: &'a Path,
    port: u16,
    /// For what it has beside what clients use; others after a crash.
    more_ports: [u16; 2],
    programs: &'a Programs,
}

/// Which servers may be used, and what may be done to have them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Policy {
    pub(crate) source: Source,
    pub(crate) install: Install,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
    Any,
    ThrowAway,
}

/// Whether a missing server may be installed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Install {
    Allowed,
    Refused,
}

/// A server that is there and lets us in; a throw-away one ends with this value.
pub(crate) struct Server {
    kind: &'static Kind,
    url: String,
    _throw_away: Option<ThrowAway>,
}

impl Server {
    pub(crate) fn variable(&self) -> &'static str {
        self.kind.variable
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

/// Where a server will come from.
enum Plan {
    Named(String),
    Local(String),
    ThrowAway(Programs, User),
    Install,
}

/// Has a server of every kind, or says in one sentence why not.
///
/// The programs are there for every kind, also where a server is: some tests crash their own.
pub(crate) fn start(policy: Policy) -> Result<Vec<Server>, Error> {
    let is_missing = |kind: &&Kind| Programs::find(kind).is_none();
    let missing: Vec<_> = KINDS.into_iter().filter(is_missing).collect();
    install::may(&missing, policy.install)?;
    let plans = plans(policy)?;
    install::install(&missing, policy.install)?;
    // At the same time, since some take seconds.
    thread::scope(|scope| {
        let starts: Vec<_> = plans
            .into_iter()
            .map(|(kind, plan)| scope.spawn(move || kind.carry_out(plan, policy.install)))
            .collect();
        starts
            .into_iter()
            .map(|start| start.join().unwrap_or_else(|why| panic::resume_unwind(why)))
            .collect()
    })
}

/// Has the programs of which clusters are made, or says in one sentence why not.
pub(crate) fn for_clusters(install: Install) -> Result<(), Error> {
    let is_missing = |kind: &&Kind| Programs::find(kind).is_none();
    let missing: Vec<_> = OF_CLUSTERS.into_iter().filter(is_missing).collect();
    install::install(&missing, install)
}

/// Prints what [`start`] would use; with throw-away ones asked for, starts them for the caller.
pub(crate) fn show(policy: Policy) -> Result<(), Error> {
    if policy.source == Source::Any {
        for (kind, plan) in plans(policy)? {
            println!("{}: {}", kind.name, kind.describe(&plan, policy.install)?);
        }
        return Ok(());
    }
    let servers = start(policy)?;
    for server in &servers {
        println!("export {}='{}'", server.variable(), server.url());
    }
    let end = io::copy(&mut io::stdin(), &mut io::sink());
    end.map(drop)
        .map_err(|error| Error::new(format!("cannot read the input: {error}")))
}

fn plans(policy: Policy) -> Result<Vec<(&'static Kind, Plan)>, Error> {
    KINDS
        .into_iter()
        .map(|kind| Ok((kind, kind.plan(policy.source)?)))
        .collect()
}

impl Kind {
    fn plan(&self, source: Source) -> Result<Plan, Error> {
        if source == Source::Any {
            if let Some(url) = self.named()? {
                return Ok(Plan::Named(url));
            }
            if let Some(url) = self.local()? {
                return Ok(Plan::Local(url));
            }
        }
        match Programs::find(self) {
            Some(programs) => Ok(Plan::ThrowAway(programs, User::running(self)?)),
            None => Ok(Plan::Install),
        }
    }

    /// The server named in the environment. One that cannot be used is an error.
    fn named(&self) -> Result<Option<String>, Error> {
        let Some(url) = env::var(self.variable).ok().filter(|url| !url.is_empty()) else {
            return Ok(None);
        };
        match self.usable(&url)? {
            Ok(()) => Ok(Some(url)),
            Err(why) => Err(Error::new(format!(
                "the {} named in {} cannot be used: {why}",
                self.name, self.variable
            ))),
        }
    }

    /// The server on the usual port, if it lets us in.
    fn local(&self) -> Result<Option<String>, Error> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.usual_port));
        if TcpStream::connect_timeout(&address, Duration::from_millis(500)).is_err() {
            return Ok(None);
        }
        let url = (self.url)(self.usual_port);
        match self.usable(&url)? {
            Ok(()) => Ok(Some(url)),
            Err(why) => {
                let port = self.usual_port;
                eprintln!("{}: the one on port {port} is not used: {why}", self.name);
                Ok(None)
            }
        }
    }

    /// Whether tests may use a server; the inner error is the reason why not.
    fn usable(&self, url: &str) -> Result<Result<(), String>, Error> {
        match self.check {
            Check::Greeting => Ok(wire::usable(self, url)),
            Check::Program => check::usable(url),
        }
    }

    fn describe(&self, plan: &Plan, install: Install) -> Result<String, Error> {
        Ok(match plan {
            Plan::Named(url) => {
                format!(
                    "the one named in {}, {}",
                    self.variable,
                    without_password(url)
                )
            }
            Plan::Local(url) => format!("the local one, {url}"),
            Plan::ThrowAway(programs, user) => {
                format!(
                    "a throw-away one, from {}, as {user}",
                    programs.last().display()
                )
            }
            Plan::Install => {
                install::may(&[self], install)?;
                let (packages, installer) = self.origin.names();
                let packages = packages.join(", ");
                format!("a throw-away one, after the installation of {packages} with {installer}")
            }
        })
    }

    fn carry_out(&'static self, plan: Plan, install: Install) -> Result<Server, Error> {
        let start = Instant::now();
        let (url, throw_away) = match plan {
            Plan::Named(url) | Plan::Local(url) => (url, None),
            Plan::ThrowAway(..) | Plan::Install => {
                let server = ThrowAway::start_when(self, install)?;
                (server.url(), Some(server))
            }
        };
        if throw_away.is_none() {
            eprintln!("{}: {}", self.name, without_password(&url));
        } else {
            let seconds = start.elapsed().as_secs_f64();
            eprintln!(
                "{}: {url}, a throw-away one, ready after {seconds:.1} s",
                self.name
            );
            self.usable(&url)?.map_err(|why| {
                Error::new(format!(
                    "the throw-away {} cannot be used: {why}",
                    self.name
                ))
            })?;
        }
        Ok(Server {
            kind: self,
            url,
            _throw_away: throw_away,
        })
    }
}

impl Origin {
    /// The packages, and what installs them.
    fn names(&self) -> (Vec<&'static str>, &'static str) {
        match self {
            Self::Debian(packages) => (packages.to_vec(), "apt-get"),
            Self::Pypi(package) => (package.names(), "pip"),
        }
    }
}

/// The URL as it may stand in a log.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((name, _)) => format!("{scheme}://{name}:***@{host}{path}"),
            None => url.to_owned(),
        },
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_urls_are_full() {
        let url = |kind: &Kind| (kind.url)(kind.usual_port);
        assert_eq!(
            url(&POSTGRES),
            "postgres://postgres@127.0.0.1:5432/postgres"
        );
        assert_eq!(url(&MARIADB), "mysql://root@127.0.0.1:3306/test");
        assert_eq!(url(&RABBITMQ), "amqp://guest:guest@127.0.0.1:5672/%2f");
        assert_eq!(url(&NATS), "nats://127.0.0.1:4222");
        assert_eq!(url(&KAFKA), "127.0.0.1:9092");
        assert_eq!(url(&SQS), "http://127.0.0.1:5000");
    }

    #[test]
    fn each_kind_has_its_own_variable() {
        for kind in KINDS {
            let wanted = format!("IDEMPOTENT_{}_URL", kind.name.to_uppercase());
            let wanted = wanted.replace("POSTGRESQL", "POSTGRES");
            assert_eq!(kind.variable, wanted);
        }
    }

    #[test]
    fn a_password_does_not_reach_the_log() {
        let shown = without_password("postgres://me:s3:cr@t@db.example:5432/name?sslmode=require");
        assert_eq!(
            shown,
            "postgres://me:***@db.example:5432/name?sslmode=require"
        );
        for url in [
            "mysql://root@127.0.0.1:3306/test",
            "mysql://localhost/test",
            "nonsense",
        ] {
            assert_eq!(without_password(url), url);
        }
    }
}
