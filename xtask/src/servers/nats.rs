use std::io::{self, BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::Command;

use crate::servers::wire::{Target, expect};
use crate::servers::{Check, Kind, Origin, Site};

/// `NATS`, with `JetStream`.
pub const NATS: Kind = Kind {
    name: "NATS",
    variable: "IDEMPOTENT_NATS_URL",
    usual_port: 4222,
    url: |port| format!("nats://127.0.0.1:{port}"),
    unix_user: Some("nats"),
    programs: &["nats-server"],
    proof: Some("--version"),
    directories: &["/usr/sbin"],
    libraries: &[],
    origin: Origin::Debian(&["nats-server"]),
    prepare: None,
    serve,
    greet,
    check: Check::Greeting,
    stop_signal: "KILL",
};

/// Far more than a server has to say about itself.
const LONGEST_LINE: u64 = 64 * 1024;

/// What is stored reaches the operating system at once, and so survives the server.
fn serve(site: &Site) -> Command {
    let mut nats = site.programs.command("nats-server");
    nats.args(["-a", "127.0.0.1", "-p", &site.port.to_string(), "-js"]);
    nats.arg("-sd").arg(site.directory.join("data"));
    nats
}

/// The server speaks first, about itself.
fn greet(stream: &mut TcpStream, target: &Target) -> io::Result<()> {
    let mut line = Vec::new();
    BufReader::new(stream.take(LONGEST_LINE)).read_until(b'\n', &mut line)?;
    let line = String::from_utf8_lossy(&line);
    expect(line.starts_with("INFO {"), "it does not speak NATS")?;
    let says = |what: &str| line.contains(what);
    expect(says(r#""jetstream":true"#), "it has no JetStream")?;
    let is_closed = says(r#""auth_required":true"#) && target.login.is_none();
    expect(!is_closed, "it wants a password")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::wire::scripted::outcome;

    fn said(url: &str, answer: &str) -> Result<(), String> {
        outcome(&NATS, url, &[answer.as_bytes()])
    }

    #[test]
    fn a_server_with_jetstream_is_welcome() {
        let info = "INFO {\"server_id\":\"N\",\"jetstream\":true,\"port\":4222} \r\n";
        assert_eq!(said("nats://HERE", info), Ok(()));
    }

    #[test]
    fn a_server_without_jetstream_is_not() {
        let info = "INFO {\"server_id\":\"N\",\"port\":4222}\r\n";
        assert_eq!(
            said("nats://HERE", info).unwrap_err(),
            "it has no JetStream"
        );
    }

    #[test]
    fn a_password_has_to_be_in_the_url() {
        let info = "INFO {\"auth_required\":true,\"jetstream\":true}\r\n";
        assert_eq!(
            said("nats://HERE", info).unwrap_err(),
            "it wants a password"
        );
        assert_eq!(said("nats://me:secret@HERE", info), Ok(()));
    }

    #[test]
    fn a_stranger_is_not_taken_for_nats() {
        for stranger in ["220 mail.example ESMTP\r\n", "\u{1}\u{2}"] {
            assert_eq!(
                said("nats://HERE", stranger).unwrap_err(),
                "it does not speak NATS"
            );
        }
    }
}
