//! The processes of a storm, and what they say.

use std::io::{self, BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use crate::chaos::arena::Stage;
use crate::chaos::said::Said;
use crate::chaos::storm::Role;
use crate::error::Error;

/// Everybody who is there. They end with this value.
pub(super) struct Crew {
    stage: Stage,
    members: Vec<Member>,
    lives: u32,
    /// For those who will be started.
    speaker: Sender<Heard>,
    heard: Receiver<Heard>,
}

struct Member {
    role: Role,
    /// Tells it from those who had the role before.
    life: u32,
    child: Child,
}

struct Heard {
    life: u32,
    /// `None` is the end.
    line: Option<String>,
}

/// What the driver hears.
pub(super) enum News {
    Said(Said),
    /// By itself, and without a complaint.
    Ended(Role),
}

impl Crew {
    pub(super) fn new(stage: Stage) -> Self {
        let (speaker, heard) = mpsc::channel();
        Self {
            stage,
            members: Vec::new(),
            lives: 0,
            speaker,
            heard,
        }
    }

    /// Starts a process; the publisher begins at a place in the order.
    pub(super) fn start(&mut self, role: Role, confirmed: u64) -> Result<(), Error> {
        let mut command = self.stage.command(role.task());
        if role == Role::Publisher {
            command.arg(format!("--from={confirmed}"));
        }
        if let Role::Consumer(number) = role {
            command.arg(format!("--worker={number}"));
        }
        // Its input ends with us, and so does it.
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child =
            child.map_err(|error| Error::new(format!("{role} did not start: {error}")))?;
        self.lives += 1;
        let life = self.lives;
        if let Some(output) = child.stdout.take() {
            let speaker = self.speaker.clone();
            thread::spawn(move || listen(output, life, &speaker));
        }
        self.members.push(Member { role, life, child });
        Ok(())
    }

    /// The next that anybody says, if that comes soon.
    pub(super) fn hear(&mut self, patience: Duration) -> Result<Option<News>, Error> {
        let heard = match self.heard.recv_timeout(patience) {
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(None),
        };
        let Some(line) = heard.line else {
            return self.end(heard.life);
        };
        Said::parse(&line).map(|said| Some(News::Said(said)))
    }

    /// The output of a process has ended: it was killed before, or it has ended by itself.
    fn end(&mut self, life: u32) -> Result<Option<News>, Error> {
        let mut members = self.members.iter();
        let Some(at) = members.position(|member| member.life == life) else {
            return Ok(None);
        };
        let mut member = self.members.remove(at);
        let role = member.role;
        match member.child.wait() {
            Ok(status) if status.success() => Ok(Some(News::Ended(role))),
            Ok(status) => Err(Error::new(format!("{role} failed: {status}"))),
            Err(error) => Err(Error::new(format!("{role} is out of sight: {error}"))),
        }
    }

    /// Kills whoever has a role, and lets another begin. Says whether there was anybody: who has
    /// ended by itself is left.
    pub(super) fn kill(&mut self, role: Role, confirmed: u64) -> Result<bool, Error> {
        let mut members = self.members.iter_mut();
        let victim = members.position(|member| member.role == role && member.lives());
        if let Some(at) = victim {
            drop(self.members.remove(at));
            self.start(role, confirmed)?;
        }
        Ok(victim.is_some())
    }

    /// Kills everybody.
    pub(super) fn clear(&mut self) {
        self.members.clear();
    }
}

impl Member {
    fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// As a crash does it: there is no time for anything.
impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(output: ChildStdout, life: u32, speaker: &Sender<Heard>) {
    let lines = BufReader::new(output).lines().map_while(io::Result::ok);
    // Where nobody hears any more, there is nothing left to say.
    for line in lines.map(Some).chain([None]) {
        if speaker.send(Heard { life, line }).is_err() {
            return;
        }
    }
}
