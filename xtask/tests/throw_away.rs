//! Throw-away servers of every kind: tests of crashes rely on them.

use std::net::TcpStream;

use xtask::Error;
use xtask::servers::{Kind, MARIADB, POSTGRES, ThrowAway};

fn listens(server: &ThrowAway) -> bool {
    TcpStream::connect(server.address()).is_ok()
}

fn crashes_and_comes_back(kind: &'static Kind) -> Result<(), Error> {
    let mut server = ThrowAway::start(kind)?;
    let (url, directory) = (server.url(), server.directory().to_owned());
    server.crash();
    assert!(!listens(&server), "still there after a crash");
    server.restart()?;
    assert_eq!(server.url(), url);
    assert!(listens(&server), "not there after a restart");
    let address = server.address();
    drop(server);
    assert!(
        TcpStream::connect(address).is_err(),
        "still there after its end"
    );
    assert!(!directory.exists(), "left {} behind", directory.display());
    Ok(())
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
fn two_of_a_kind_do_not_meet() -> Result<(), Error> {
    let (one, other) = (ThrowAway::start(&POSTGRES)?, ThrowAway::start(&POSTGRES)?);
    assert_ne!(one.url(), other.url());
    assert_ne!(one.directory(), other.directory());
    Ok(())
}
