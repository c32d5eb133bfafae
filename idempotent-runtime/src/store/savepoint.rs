//! Savepoints with a name of their own, for MariaDB and SQLite.

use std::fmt::{self, Display, Formatter};
use std::sync::atomic::{AtomicU64, Ordering};

/// A savepoint name that no other claim of this process has.
#[derive(Debug)]
#[allow(unreachable_pub, reason = "it is an associated type of a public trait")]
pub struct SavepointName(u64);

impl SavepointName {
    pub(super) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Display for SavepointName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "idempotent_{}", self.0)
    }
}
