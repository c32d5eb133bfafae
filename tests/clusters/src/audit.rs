//! What is there in the end.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};

use idempotent_tests::Engine;
use sqlx::Pool;

use crate::tables::ROWS;

/// What became of messages that were all acknowledged.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Audit {
    /// How many messages there were.
    pub messages: usize,
    /// Those that have no effect, or half of one.
    pub lost: usize,
    /// Those that have more than one.
    pub doubled: usize,
}

impl Audit {
    /// Compares the effects with the messages.
    ///
    /// # Panics
    ///
    /// If the database does not answer, or holds an effect of no message.
    pub async fn of<DB: Engine>(pool: &Pool<DB>, ids: impl Iterator<Item = String>) -> Self {
        const EFFECTS: &str = "SELECT concat(count(*), ' ', id) FROM effects GROUP BY id";
        let mut conn = pool.acquire().await.expect("the database answers");
        let lines = DB::texts(&mut conn, EFFECTS).await;
        let lines = lines.expect("the effects are listed");
        let counted = |line: &String| {
            let (rows, id) = line.split_once(' ')?;
            Some((id.to_owned(), rows.parse().ok()?))
        };
        let effects = lines
            .iter()
            .map(counted)
            .collect::<Option<HashMap<String, i64>>>();
        let mut effects = effects.expect("a number and an id");
        let mut audit = Self::default();
        for id in ids {
            audit.messages += 1;
            let rows = effects.remove(&id).unwrap_or_default();
            audit.lost += usize::from(rows < ROWS);
            audit.doubled += usize::from(rows > ROWS);
        }
        assert!(effects.is_empty(), "nobody's effects: {effects:?}");
        audit
    }

    /// Says whether all is well.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.lost == 0 && self.doubled == 0
    }
}

impl Display for Audit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            messages,
            lost,
            doubled,
        } = self;
        write!(f, "messages={messages} lost={lost} doubled={doubled}")
    }
}
