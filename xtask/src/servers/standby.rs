use std::fs;

use crate::error::Error;
use crate::servers::throw_away::ThrowAway;
use crate::servers::{Install, POSTGRES};

/// A `PostgreSQL` and a standby that began as its copy, for tests that kill the first and promote
/// the second. They end as a [`ThrowAway`] does.
pub struct Pair {
    /// Takes writes.
    pub primary: ThrowAway,
    /// Takes none until it is promoted. It replicates from the primary once it is told where that
    /// is, by `primary_conninfo`.
    pub standby: ThrowAway,
}

impl Pair {
    /// Starts the two from installed programs, which are installed first where that is allowed.
    ///
    /// # Errors
    ///
    /// One sentence that says what is missing or what a server said.
    pub fn start() -> Result<Self, Error> {
        let mut primary = ThrowAway::prepared(&POSTGRES, Install::from_environment())?;
        let mut standby = primary.copy()?;
        let signal = standby.data().join("standby.signal");
        fs::write(&signal, "")
            .map_err(|error| Error::new(format!("cannot write {}: {error}", signal.display())))?;
        primary.start_with(Vec::new())?;
        standby.start_with(Vec::new())?;
        Ok(Self { primary, standby })
    }
}
