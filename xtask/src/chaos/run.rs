//! One storm, from the first message to the audit.

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use crate::chaos::arena::{Arena, Stage};
use crate::chaos::crew::{Crew, News};
use crate::chaos::progress::Progress;
use crate::chaos::said::{Audited, Said};
use crate::chaos::storm::{Blow, Planned, Role, Storm};
use crate::chaos::tally::Tally;
use crate::error::Error;

/// How long nothing may go on: a broker that starts on a busy machine takes a part of it.
const PATIENCE: Duration = Duration::from_mins(2);

/// How old the queues are at least when the broker is killed. `RabbitMQ` 3.10 writes the name of a
/// new quorum queue to the disk up to 3 s after it has declared it. Killed sooner, it begins an empty
/// one of that name, without a leader: <https://github.com/rabbitmq/ra/pull/443>.
const NEW_QUEUE: Duration = Duration::from_secs(5);

pub(super) struct Run<'a> {
    arena: &'a mut Arena,
    crew: Crew,
    plan: VecDeque<Planned>,
    published: u64,
    confirmed: u64,
    /// When a message was published or handled.
    last: Instant,
    /// What somebody complained of last.
    trouble: Option<String>,
    progress: Progress,
    tally: Tally,
}

impl<'a> Run<'a> {
    pub(super) fn start(arena: &'a mut Arena, stage: Stage, storm: &Storm) -> Result<Self, Error> {
        let mut crew = Crew::new(stage);
        for role in storm.roles() {
            crew.start(role, 0)?;
        }
        Ok(Self {
            arena,
            crew,
            plan: storm.plan().into(),
            published: storm.published(),
            confirmed: 0,
            last: Instant::now(),
            trouble: None,
            progress: Progress::new(),
            tally: Tally::of(storm),
        })
    }

    pub(super) fn finish(mut self) -> Result<Tally, Error> {
        self.publish()?;
        // Whatever the consumers still hold: it comes back, to the auditor.
        self.crew.clear();
        self.tally.audited = self.audit()?;
        self.tally.took = self.progress.took();
        eprintln!("{}", self.tally.details());
        Ok(self.tally)
    }

    /// Until the publisher is done, and has seen the queues empty.
    fn publish(&mut self) -> Result<(), Error> {
        loop {
            match self.hear()? {
                Some(News::Ended(Role::Publisher)) if self.confirmed == self.published => {
                    return Ok(());
                }
                Some(News::Ended(role)) => return Err(early(role)),
                Some(News::Said(said)) => self.note(said),
                None => {}
            }
            while let Some(planned) = self.plan.pop_front_if(|next| next.after < self.confirmed) {
                thread::sleep(planned.hesitation);
                self.strike(planned.blow)?;
            }
            self.progress
                .show(self.confirmed, self.published, &self.tally);
        }
    }

    fn audit(&mut self) -> Result<Audited, Error> {
        self.crew.start(Role::Auditor, self.confirmed)?;
        loop {
            match self.hear()? {
                Some(News::Said(Said::Audited(audited))) => return Ok(audited),
                Some(News::Ended(role)) => return Err(early(role)),
                Some(News::Said(said)) => self.note(said),
                None => {}
            }
        }
    }

    fn hear(&mut self) -> Result<Option<News>, Error> {
        if self.last.elapsed() > PATIENCE {
            let trouble = self.trouble.as_deref().unwrap_or("nobody complains");
            let what = "nothing was published or handled for two minutes";
            return Err(Error::new(format!("{what}; the last trouble: {trouble}")));
        }
        self.crew.hear(Duration::from_secs(1))
    }

    fn note(&mut self, said: Said) {
        match said {
            Said::Confirmed(place) => {
                self.confirmed = self.confirmed.max(place);
                self.last = Instant::now();
            }
            Said::Handled(handled) => {
                self.tally.handled += handled;
                if handled.processed + handled.duplicates > 0 {
                    self.last = Instant::now();
                }
            }
            Said::Pruned(keys) => self.tally.pruned += keys,
            Said::Trouble(trouble) => self.trouble = Some(trouble),
            Said::Audited(_) => {}
        }
    }

    fn strike(&mut self, blow: Blow) -> Result<(), Error> {
        match blow {
            Blow::Kill(role) => {
                let was_there = self.crew.kill(role, self.confirmed)?;
                self.tally.kills += u32::from(was_there);
                Ok(())
            }
            Blow::RestartDatabase => self.restart_database(),
            Blow::RestartBroker => self.restart_broker(),
        }
    }

    fn restart_database(&mut self) -> Result<(), Error> {
        let start = Instant::now();
        self.arena.postgres.stop();
        self.arena.postgres.restart()?;
        self.note_restart("the database was stopped at once", start);
        Ok(())
    }

    fn restart_broker(&mut self) -> Result<(), Error> {
        thread::sleep(NEW_QUEUE.saturating_sub(self.progress.took()));
        let start = Instant::now();
        self.arena.rabbitmq.crash();
        self.arena.rabbitmq.restart()?;
        self.note_restart("the broker was killed", start);
        Ok(())
    }

    fn note_restart(&mut self, what: &str, start: Instant) {
        self.tally.restarts += 1;
        self.last = Instant::now();
        let seconds = start.elapsed().as_secs_f64();
        eprintln!("       {what}, and is back after {seconds:.1} s");
    }
}

fn early(role: Role) -> Error {
    Error::new(format!("{role} has ended before its time"))
}
