use std::io;
use std::net::TcpStream;
use std::process::Command;

use crate::servers::wire::{Target, expect, read};
use crate::servers::{Check, Kind, Origin, Site};

/// `MariaDB`.
pub const MARIADB: Kind = Kind {
    name: "MariaDB",
    variable: "IDEMPOTENT_MARIADB_URL",
    usual_port: 3306,
    url: |port| format!("mysql://root@127.0.0.1:{port}/test"),
    unix_user: Some("mysql"),
    programs: &["mariadb-install-db", "mariadbd"],
    proof: Some("--version"),
    directories: &["/usr/sbin", "/usr/bin"],
    libraries: &[],
    origin: Origin::Debian(&["mariadb-server"]),
    prepare: Some(prepare),
    serve,
    greet,
    check: Check::Program,
    stop_signal: "KILL",
};

fn prepare(site: &Site) -> Command {
    let mut install = site.programs.command("mariadb-install-db");
    install
        .arg("--no-defaults")
        .arg(option("--datadir=", site, "data"));
    install.args([
        "--auth-root-authentication-method=normal",
        "--skip-name-resolve",
    ]);
    install.arg("--innodb-flush-method=nosync");
    install
}

/// Commits reach the operating system but not the disk: they survive the server, and that is
/// all a test can see. (`innodb_flush_log_at_trx_commit=0` would lose them.)
pub(super) fn serve(site: &Site) -> Command {
    let mut mariadbd = site.programs.command("mariadbd");
    mariadbd
        .arg("--no-defaults")
        .arg(option("--datadir=", site, "data"));
    mariadbd.arg(option("--socket=", site, "socket"));
    mariadbd.arg(option("--pid-file=", site, "mariadbd.pid"));
    mariadbd.arg(format!("--port={}", site.port));
    mariadbd.args([
        "--bind-address=127.0.0.1",
        "--skip-name-resolve",
        "--innodb-flush-log-at-trx-commit=2",
        "--max-connections=200",
    ]);
    mariadbd
}

fn option(name: &str, site: &Site, file: &str) -> String {
    format!("{name}{}", site.directory.join(file).display())
}

/// The server speaks first: version 10 of the protocol, or an error.
fn greet(stream: &mut TcpStream, _: &Target) -> io::Result<()> {
    let greeting: [u8; 5] = read(stream)?;
    expect(greeting[4] == 10, "it does not let clients in")
}
