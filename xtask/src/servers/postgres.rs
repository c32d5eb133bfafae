use std::io::{self, Write};
use std::net::TcpStream;
use std::process::Command;

use crate::servers::wire::{Target, expect, read};
use crate::servers::{Check, Kind, Origin, Site};

/// `PostgreSQL`.
pub const POSTGRES: Kind = Kind {
    name: "PostgreSQL",
    variable: "IDEMPOTENT_POSTGRES_URL",
    usual_port: 5432,
    url: |port| format!("postgres://postgres@127.0.0.1:{port}/postgres"),
    unix_user: Some("postgres"),
    programs: &["initdb", "postgres"],
    proof: Some("--version"),
    directories: &["/usr/lib/postgresql/*/bin"],
    libraries: &[],
    origin: Origin::Debian(&["postgresql"]),
    prepare: Some(prepare),
    serve,
    greet,
    check: Check::Program,
    // An immediate shutdown: no last checkpoint, and its shared memory is freed.
    stop_signal: "QUIT",
};

/// `PostgreSQL` that writes to the disk what it says is committed, as a user's does.
pub const POSTGRES_ON_DISK: Kind = Kind {
    serve: serve_on_disk,
    ..POSTGRES
};

fn prepare(site: &Site) -> Command {
    let mut initdb = site.programs.command("initdb");
    initdb.arg("--pgdata").arg(site.directory.join("data"));
    initdb.args([
        "--username=postgres",
        "--auth=trust",
        "--no-locale",
        "--encoding=UTF8",
    ]);
    initdb.args(["--no-sync", "--no-instructions"]);
    initdb
}

/// Commits reach the operating system but not the disk: they survive the server, and that is
/// all a test can see. (`synchronous_commit=off` would lose them.)
fn serve(site: &Site) -> Command {
    let mut postgres = serve_on_disk(site);
    for setting in ["fsync=off", "full_page_writes=off"] {
        postgres.arg("-c").arg(setting);
    }
    postgres
}

fn serve_on_disk(site: &Site) -> Command {
    let mut postgres = site.programs.command("postgres");
    postgres.arg("-D").arg(site.directory.join("data"));
    postgres
        .arg("-k")
        .arg(site.directory)
        .arg("-p")
        .arg(site.port.to_string());
    for setting in ["listen_addresses=127.0.0.1", "max_connections=200"] {
        postgres.arg("-c").arg(setting);
    }
    postgres
}

/// The start-up message of protocol 3.0; a server that lets clients in answers with `R`.
fn greet(stream: &mut TcpStream, _: &Target) -> io::Result<()> {
    const PARAMETERS: &[u8] = b"user\0postgres\0database\0postgres\0\0";
    let length = u8::try_from(8 + PARAMETERS.len()).map_err(io::Error::other)?;
    stream.write_all(&[&[0, 0, 0, length, 0, 3, 0, 0], PARAMETERS].concat())?;
    let kind: [u8; 1] = read(stream)?;
    expect(kind == *b"R", "it does not let clients in")
}
