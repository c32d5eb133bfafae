use std::env;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use crate::servers::pypi::{Package, Program};
use crate::servers::wire::{Target, expect};
use crate::servers::{Check, Kind, Origin, Site};

/// `SQS`, by moto's server, which keeps everything in memory.
pub const SQS: Kind = Kind {
    name: "SQS",
    variable: "IDEMPOTENT_SQS_URL",
    usual_port: 5000,
    url: |port| format!("http://127.0.0.1:{port}"),
    unix_user: None,
    programs: &["moto_server"],
    proof: Some("--help"),
    directories: &[],
    libraries: &[],
    origin: Origin::Pypi(Package {
        // `moto[server]` is these, and much that other services than SQS need.
        requirements: &["moto==5.2.5", "flask==3.1.3", "flask-cors==6.0.5"],
        program: Program::Script("moto_server"),
    }),
    prepare: None,
    serve,
    greet,
    check: Check::Greeting,
    stop_signal: "KILL",
};

/// Where moto's own words begin, and not an emulated service's.
const REQUEST: &str = "GET /moto-api/ HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// More than the page has.
const LONGEST_ANSWER: u64 = 256 * 1024;

fn serve(site: &Site) -> Command {
    let mut moto = site.programs.command("moto_server");
    moto.args(["-H", "127.0.0.1", "-p", &site.port.to_string()]);
    // One that a user installed for themselves has its modules in their home, which is not ours.
    if let (None, Some(home)) = (env::var_os("PYTHONUSERBASE"), env::var_os("HOME")) {
        moto.env("PYTHONUSERBASE", Path::new(&home).join(".local"));
    }
    moto
}

fn greet(stream: &mut TcpStream, _: &Target) -> io::Result<()> {
    stream.write_all(REQUEST.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split(' ').nth(1);
    let is_moto = answer.starts_with("HTTP/1.") && status == Some("200");
    expect(
        is_moto && answer.contains("<title>Moto</title>"),
        "it is not moto's server",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::wire::scripted::outcome;

    fn said(answer: &str) -> Result<(), String> {
        outcome(&SQS, "http://HERE", &[answer.as_bytes()])
    }

    #[test]
    fn motos_page_is_moto() {
        let page = "HTTP/1.1 200 OK\r\nServer: Werkzeug\r\n\r\n<title>Moto</title>";
        assert_eq!(said(page), Ok(()));
    }

    #[test]
    fn another_web_server_is_not() {
        for page in [
            "HTTP/1.1 404 NOT FOUND\r\n\r\n<title>Moto</title>",
            "HTTP/1.1 200 OK\r\n\r\n<title>My application</title>",
            "SSH-2.0-OpenSSH 200 <title>Moto</title>",
        ] {
            assert_eq!(said(page).unwrap_err(), "it is not moto's server");
        }
    }
}
