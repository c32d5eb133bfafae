use std::io::{self, Write};
use std::net::TcpStream;
use std::process::Command;

use crate::servers::wire::{self, Login, Target, expect, read};
use crate::servers::{Check, Kind, Origin, Site};

/// `RabbitMQ`.
pub const RABBITMQ: Kind = Kind {
    name: "RabbitMQ",
    variable: "IDEMPOTENT_RABBITMQ_URL",
    usual_port: 5672,
    url: |port| format!("amqp://guest:guest@127.0.0.1:{port}/%2f"),
    unix_user: Some("rabbitmq"),
    programs: &["rabbitmq-server"],
    // Asked for anything, it starts.
    proof: None,
    directories: &["/usr/lib/rabbitmq/bin"],
    libraries: &[],
    origin: Origin::Debian(&["rabbitmq-server"]),
    prepare: None,
    serve,
    greet,
    check: Check::Greeting,
    stop_signal: "KILL",
};

/// Erlang's register of nodes, ours alone and in our process group: of itself, Erlang would
/// start one that stays behind. It is there before the server, and goes with it. Like all of
/// Erlang it is found in `PATH`.
const SCRIPT: &str = r#"
epmd & epmd=$!
until epmd -names; do
    kill -0 "$epmd" || exit
    sleep 0.05
done >/dev/null 2>&1
"$1"
status=$?
kill "$epmd"
wait
exit "$status"
"#;

/// What names a file or a directory, all of them ours. Those that are not there say that we
/// have no configuration and no plugins, whatever the machine's own server has.
const PLACES: [(&str, &str); 8] = [
    ("RABBITMQ_ADVANCED_CONFIG_FILE", "advanced.config"),
    ("RABBITMQ_CONFIG_FILE", "rabbitmq"),
    ("RABBITMQ_CONFIG_FILES", "conf.d"),
    ("RABBITMQ_CONF_ENV_FILE", "rabbitmq-env.conf"),
    ("RABBITMQ_ENABLED_PLUGINS_FILE", "plugins"),
    ("RABBITMQ_LOG_BASE", "logs"),
    ("RABBITMQ_MNESIA_BASE", "data"),
    ("RABBITMQ_PID_FILE", "rabbitmq.pid"),
];

const STRANGER: &str = "it does not speak AMQP 0-9-1";

/// Far more than a server says before a client is in.
const LONGEST_FRAME: u32 = 64 * 1024;

/// Methods of the class `connection`.
const START: [u8; 4] = [0, 10, 0, 10];
const START_OK: [u8; 4] = [0, 10, 0, 11];
const TUNE: [u8; 4] = [0, 10, 0, 30];

/// The name of the node names the directory of its data, so it is the same after a crash. The
/// cookie is one that Erlang makes, in `HOME`.
fn serve(site: &Site) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", SCRIPT, "rabbitmq"]);
    shell.arg(site.programs.path("rabbitmq-server"));
    for (variable, file) in PLACES {
        shell.env(variable, site.directory.join(file));
    }
    let [distribution, epmd] = site.more_ports;
    for (variable, port) in [
        ("RABBITMQ_NODE_PORT", site.port),
        ("RABBITMQ_DIST_PORT", distribution),
        ("ERL_EPMD_PORT", epmd),
    ] {
        shell.env(variable, port.to_string());
    }
    shell.env("RABBITMQ_NODENAME", "idempotent@localhost");
    shell.env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1");
    shell.env("ERL_EPMD_ADDRESS", "127.0.0.1");
    shell.env(
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
        "-kernel inet_dist_use_interface {127,0,0,1}",
    );
    shell.env("RABBITMQ_LOGS", "-");
    shell
}

/// As far as a client's first settings, which are for users with the right password.
fn greet(stream: &mut TcpStream, target: &Target) -> io::Result<()> {
    stream.write_all(b"AMQP\0\0\x09\x01")?;
    expect(method(stream)? == START, STRANGER)?;
    let guest = Login::new("guest", "guest");
    let login = target.login.as_ref().unwrap_or(&guest);
    stream.write_all(&start_ok(login)?)?;
    let refusal = format!("it does not let `{}` in", login.user);
    match method(stream) {
        Ok(method) => expect(method == TUNE, &refusal),
        // Instead of a no it hangs up, after a while.
        Err(error) if wire::is_end(&error) => expect(false, &refusal),
        Err(error) => Err(error),
    }
}

/// Reads a frame, and says of which method it is.
fn method(stream: &mut TcpStream) -> io::Result<[u8; 4]> {
    let start: [u8; 3] = read(stream)?;
    let length = u32::from_be_bytes(read(stream)?);
    let is_method = start == [1, 0, 0] && (4..=LONGEST_FRAME).contains(&length);
    expect(is_method, STRANGER)?;
    let method = read(stream)?;
    let rest = u64::from(length) - 4;
    io::copy(&mut io::Read::take(&mut *stream, rest), &mut io::sink())?;
    let [end] = read(stream)?;
    expect(end == 0xce, STRANGER)?;
    Ok(method)
}

fn start_ok(login: &Login) -> io::Result<Vec<u8>> {
    const NO_PROPERTIES: [u8; 4] = [0; 4];
    let response = format!("\0{}\0{}", login.user, login.password);
    let payload = [
        &START_OK,
        &NO_PROPERTIES,
        &b"\x05PLAIN"[..],
        &length(response.len())?,
        response.as_bytes(),
        b"\x05en_US",
    ]
    .concat();
    Ok([&[1, 0, 0], &length(payload.len())?[..], &payload, &[0xce]].concat())
}

fn length(length: usize) -> io::Result<[u8; 4]> {
    u32::try_from(length)
        .map(u32::to_be_bytes)
        .map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::wire::scripted::{outcome, received};

    const START_FRAME: &[u8] = b"\x01\0\0\0\0\0\x06\0\x0a\0\x0a\0\x09\xce";
    const TUNE_FRAME: &[u8] = b"\x01\0\0\0\0\0\x04\0\x0a\0\x1e\xce";
    const CLOSE_FRAME: &[u8] = b"\x01\0\0\0\0\0\x04\0\x0a\0\x32\xce";

    #[test]
    fn who_gets_settings_is_in() {
        let answers = [START_FRAME, TUNE_FRAME];
        assert_eq!(
            outcome(&RABBITMQ, "amqp://me:it@HERE/%2f", &answers),
            Ok(())
        );
    }

    #[test]
    fn the_user_and_password_are_those_of_the_url() {
        let answers = [START_FRAME, TUNE_FRAME];
        for (url, plain) in [
            ("amqp://m%65:p%40ss@HERE/%2f", "\0\0\0\x08\0me\0p@ss"),
            ("amqp://HERE", "\0\0\0\x0c\0guest\0guest"),
        ] {
            let sent = received(&RABBITMQ, url, &answers);
            let sent = String::from_utf8_lossy(&sent).into_owned();
            assert!(
                sent.contains(&format!("\x05PLAIN{plain}\x05en_US")),
                "{sent:?}"
            );
        }
    }

    #[test]
    fn a_refusal_names_the_user() {
        let url = "amqp://me:secret@HERE";
        for answers in [&[START_FRAME][..], &[START_FRAME, CLOSE_FRAME]] {
            assert_eq!(
                outcome(&RABBITMQ, url, answers).unwrap_err(),
                "it does not let `me` in"
            );
        }
    }

    #[test]
    fn a_stranger_is_not_taken_for_rabbitmq() {
        for answer in [
            &b"AMQP\0\x01\0\0"[..],
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            b"\x01\0\0\xff\xff\xff\xff",
            TUNE_FRAME,
        ] {
            let said = outcome(&RABBITMQ, "amqp://HERE", &[answer]);
            assert_eq!(said.unwrap_err(), STRANGER);
        }
    }
}
