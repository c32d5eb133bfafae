//! Throw-away servers of every kind: tests of crashes rely on them.

mod amqp;
mod jetstream;

use std::env;
use std::fs;
use std::io;
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::process::{self, Command};
use std::thread;
use std::time::{Duration, Instant};

use xtask::Error;
use xtask::servers::{
    KAFKA, Kind, MARIADB, NATS, POSTGRES, POSTGRES_ON_DISK, RABBITMQ, SQS, ThrowAway,
};

/// What tests of brokers give up with.
fn unexpected(what: impl Into<String>) -> io::Error {
    io::Error::other(what.into())
}

fn listens(server: &ThrowAway) -> bool {
    TcpStream::connect(server.address()).is_ok()
}

fn crashes_and_comes_back(kind: &'static Kind) -> Result<(), Error> {
    let mut server = ThrowAway::start(kind)?;
    let url = server.url();
    server.crash();
    assert!(!listens(&server), "still there after a crash");
    server.restart()?;
    assert_eq!(server.url(), url);
    assert!(listens(&server), "not there after a restart");
    is_gone_after(server);
    Ok(())
}

fn is_gone_after(server: ThrowAway) {
    let (group, directory) = (group(&server), server.directory().to_owned());
    drop(server);
    assert!(!is_there(&group), "still there after its end");
    assert!(!directory.exists(), "left {} behind", directory.display());
}

/// The number of a server's process group.
fn group(server: &ThrowAway) -> String {
    let pid = fs::read_to_string(server.directory().join("pid")).unwrap();
    assert!(!pid.trim().is_empty(), "nobody knows who it is");
    pid.trim().to_owned()
}

/// Waits for the last of a process group to die; one that nobody has asked for is dead, too.
fn is_there(group: &str) -> bool {
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        let lives = |process: &String| {
            // Behind the name, which may have any characters: state, parent, group.
            let (_, rest) = process.rsplit_once(')').unwrap_or_default();
            let mut fields = rest.split_whitespace();
            let is_dead = matches!(fields.next(), None | Some("Z" | "X"));
            !is_dead && fields.nth(1) == Some(group)
        };
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let stats = processes.map(|process| fs::read_to_string(process.path().join("stat")));
        if !stats.flatten().any(|stat| lives(&stat)) {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

#[test]
fn kafka_crashes_and_comes_back() -> Result<(), Error> {
    crashes_and_comes_back(&KAFKA)
}

#[test]
fn mariadb_crashes_and_comes_back() -> Result<(), Error> {
    crashes_and_comes_back(&MARIADB)
}

#[test]
fn postgres_crashes_and_comes_back() -> Result<(), Error> {
    crashes_and_comes_back(&POSTGRES)
}

#[test]
fn postgres_stopped_at_once_recovers() -> Result<(), Box<dyn std::error::Error>> {
    let mut server = ThrowAway::start(&POSTGRES_ON_DISK)?;
    server.stop();
    assert!(!listens(&server), "still there after a stop");
    server.restart()?;
    let log = fs::read_to_string(server.directory().join("log"))?;
    for said in [
        "received immediate shutdown request",
        "automatic recovery in progress",
    ] {
        assert!(log.contains(said), "no `{said}` in its log:\n{log}");
    }
    is_gone_after(server);
    Ok(())
}

#[test]
fn sqs_crashes_and_comes_back() -> Result<(), Error> {
    crashes_and_comes_back(&SQS)
}

#[test]
fn rabbitmq_keeps_what_it_has_confirmed() -> Result<(), Box<dyn std::error::Error>> {
    let mut server = ThrowAway::start(&RABBITMQ)?;
    let mut before = amqp::Channel::open(server.address())?;
    assert_eq!(before.declare("kept")?, 0);
    before.publish("kept")?;
    server.crash();
    assert!(!listens(&server), "still there after a crash");
    server.restart()?;
    let mut after = amqp::Channel::open(server.address())?;
    assert_eq!(after.declare("kept")?, 1);
    is_gone_after(server);
    Ok(())
}

#[test]
fn what_a_dead_leader_leaves_is_ended_too() -> Result<(), Error> {
    let mut server = ThrowAway::start(&RABBITMQ)?;
    let group = group(&server);
    let leader = format!("kill -s KILL {group}");
    assert!(
        Command::new("sh")
            .args(["-c", &leader])
            .status()
            .unwrap()
            .success()
    );
    server.crash();
    assert!(!is_there(&group), "its children are there");
    Ok(())
}

#[test]
fn mariadb_leaves_the_temporary_tables_of_others_alone() -> Result<(), Box<dyn std::error::Error>> {
    let server = ThrowAway::start(&MARIADB)?;
    let name = format!("#sql-temptable-idempotent-{}.MAI", process::id());
    let table = env::temp_dir().join(name);
    fs::write(&table, "")?;
    let owner = fs::metadata(server.directory())?.uid();
    chown(&table, Some(owner), None)?;
    let second = ThrowAway::start(&MARIADB);
    let is_left_alone = fs::remove_file(&table).is_ok();
    assert!(is_left_alone, "{} is gone", table.display());
    second.map(is_gone_after)?;
    Ok(())
}

#[test]
fn nats_keeps_what_it_has_confirmed() -> Result<(), Box<dyn std::error::Error>> {
    let mut server = ThrowAway::start(&NATS)?;
    let mut before = jetstream::Client::connect(server.address())?;
    before.make_stream("kept")?;
    before.publish("kept")?;
    server.crash();
    assert!(!listens(&server), "still there after a crash");
    server.restart()?;
    let mut after = jetstream::Client::connect(server.address())?;
    assert_eq!(after.messages("kept")?, "1");
    is_gone_after(server);
    Ok(())
}

#[test]
fn two_of_a_kind_do_not_meet() -> Result<(), Error> {
    let (one, other) = (ThrowAway::start(&POSTGRES)?, ThrowAway::start(&POSTGRES)?);
    assert_ne!(one.url(), other.url());
    assert_ne!(one.directory(), other.directory());
    Ok(())
}
