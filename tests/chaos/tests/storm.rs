//! Storms over the program of this package: `cargo xtask chaos`, short.

#![forbid(unsafe_code)]

use std::env;
use std::io::{self, BufRead as _, BufReader};
use std::process::{Command, Stdio};

use xtask::Error;
use xtask::chaos::{Arena, Fault, Storm};

const PROGRAM: &str = env!("CARGO_BIN_EXE_idempotent-chaos");

/// One pair of servers for all: they take longer to start than a storm.
#[test]
fn the_ledger_is_right_after_a_storm_and_faults_are_found() -> Result<(), Error> {
    let mut arena = Arena::open(PROGRAM)?;
    let tally = arena.run(&Storm::new(if is_full() { 100_000 } else { 2_000 }))?;
    tally.judge()?;
    assert!(tally.kills() >= 12 && tally.restarts() >= 2, "{tally}");

    let mut with = |fault| {
        arena.run(&Storm {
            fault: Some(fault),
            ..Storm::new(200)
        })
    };
    let early = with(Fault::EarlyAck)?;
    assert!(early.lost() > 0 && early.doubled() == 0, "{early}");
    assert!(early.judge().is_err());
    let without_key = with(Fault::NoKey)?;
    assert!(
        without_key.doubled() > 0 && without_key.lost() == 0,
        "{without_key}"
    );
    assert!(without_key.judge().is_err());
    Ok(())
}

#[test]
fn a_process_ends_with_its_driver() -> io::Result<()> {
    let mut pruner = Command::new(PROGRAM)
        .arg("prune")
        .args(["--postgres", "postgres://127.0.0.1:1/nobody"])
        .args(["--rabbitmq", "amqp://127.0.0.1:1", "--name", "none"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (input, output) = (pruner.stdin.take(), pruner.stdout.take());
    let mut said = BufReader::new(output.expect("it is piped")).lines();
    let first = said.next().expect("it lives")?;
    assert!(first.starts_with("trouble "), "{first}");
    drop(input);
    assert!(pruner.wait()?.success());
    // Somebody listened all the time: that was not why it ended.
    drop(said);
    Ok(())
}

/// Whether the long run is asked for, with `IDEMPOTENT_FULL=1`.
fn is_full() -> bool {
    env::var_os("IDEMPOTENT_FULL").is_some_and(|value| value == "1")
}
