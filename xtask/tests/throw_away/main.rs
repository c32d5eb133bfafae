//! Throw-away servers of every kind: tests of crashes rely on them.

mod amqp;
mod jetstream;

use std::fs;
use std::io;
use std::net::TcpStream;

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
    let (address, directory) = (server.address(), server.directory().to_owned());
    drop(server);
    assert!(
        TcpStream::connect(address).is_err(),
        "still there after its end"
    );
    assert!(!directory.exists(), "left {} behind", directory.display());
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
