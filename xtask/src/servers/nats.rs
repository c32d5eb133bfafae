use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;

use crate::servers::wire::{Login, Target, expect};
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

/// The server speaks first, about itself; then it answers to those whom it lets in.
fn greet(stream: &mut TcpStream, target: &Target) -> io::Result<()> {
    let stream = &*stream;
    let mut lines = BufReader::new(stream.take(LONGEST_LINE)).split(b'\n');
    let mut next = || {
        let line = lines
            .next()
            .unwrap_or(Err(io::ErrorKind::UnexpectedEof.into()))?;
        Ok::<_, io::Error>(String::from_utf8_lossy(&line).trim().to_owned())
    };
    let about = next()?;
    expect(about.starts_with("INFO {"), "it does not speak NATS")?;
    let says = |what: &str| about.contains(what);
    expect(says(r#""jetstream":true"#), "it has no JetStream")?;
    expect(!says(r#""tls_required":true"#), "it wants TLS")?;
    let is_closed = says(r#""auth_required":true"#) && target.login.is_none();
    expect(!is_closed, "it wants a password")?;
    let connect = format!("CONNECT {}\r\nPING\r\n", options(target.login.as_ref()));
    (&mut &*stream).write_all(connect.as_bytes())?;
    loop {
        match &*next()? {
            "PONG" => return Ok(()),
            line if line.starts_with("-ERR") => {
                return expect(false, "it does not let us in");
            }
            _ => {}
        }
    }
}

/// A name without a password is a token.
fn options(login: Option<&Login>) -> String {
    let quoted = |text: &str| format!("{text:?}");
    match login {
        None => r#"{"verbose":false}"#.to_owned(),
        Some(Login { user, password }) if password.is_empty() => {
            format!(r#"{{"verbose":false,"auth_token":{}}}"#, quoted(user))
        }
        Some(Login { user, password }) => {
            let (user, password) = (quoted(user), quoted(password));
            format!(r#"{{"verbose":false,"user":{user},"pass":{password}}}"#)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::wire::scripted::{outcome, received};

    const INFO: &str = "INFO {\"server_id\":\"N\",\"jetstream\":true,\"port\":4222} \r\n";
    const CLOSED: &str = "INFO {\"auth_required\":true,\"jetstream\":true}\r\n";

    fn said(url: &str, answers: &[&str]) -> Result<(), String> {
        outcome(&NATS, url, &[answers.concat().as_bytes()])
    }

    #[test]
    fn a_server_with_jetstream_is_welcome() {
        assert_eq!(said("nats://HERE", &[INFO, "PING\r\nPONG\r\n"]), Ok(()));
    }

    #[test]
    fn a_server_that_does_not_serve_us_is_not() {
        for (info, reason) in [
            (
                "INFO {\"server_id\":\"N\",\"port\":4222}\r\n",
                "it has no JetStream",
            ),
            (
                "INFO {\"jetstream\":true,\"tls_required\":true}\r\n",
                "it wants TLS",
            ),
            (CLOSED, "it wants a password"),
            (INFO, "it hangs up"),
        ] {
            assert_eq!(said("nats://HERE", &[info]).unwrap_err(), reason);
        }
    }

    #[test]
    fn a_password_has_to_be_the_right_one() {
        let url = "nats://me:se%22cret@HERE";
        assert_eq!(said(url, &[CLOSED, "PONG\r\n"]), Ok(()));
        let refusal = said(url, &[CLOSED, "-ERR 'Authorization Violation'\r\n"]);
        assert_eq!(refusal.unwrap_err(), "it does not let us in");
        for (url, options) in [
            (
                url,
                r#"CONNECT {"verbose":false,"user":"me","pass":"se\"cret"}"#,
            ),
            (
                "nats://token@HERE",
                r#"CONNECT {"verbose":false,"auth_token":"token"}"#,
            ),
        ] {
            let sent = received(&NATS, url, &[CLOSED.as_bytes(), b"PONG\r\n"]);
            assert_eq!(
                String::from_utf8_lossy(&sent),
                format!("{options}\r\nPING\r\n")
            );
        }
    }

    #[test]
    fn a_stranger_is_not_taken_for_nats() {
        for stranger in ["220 mail.example ESMTP\r\n", "\u{1}\u{2}"] {
            assert_eq!(
                said("nats://HERE", &[stranger]).unwrap_err(),
                "it does not speak NATS"
            );
        }
    }
}
