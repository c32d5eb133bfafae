//! The table of processed messages: its name, making it, checking it.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

use sqlx::Pool;

use crate::attempts::{Backoff, TRIES};
use crate::error::{Cause, Error};
use crate::store::Store;

/// The table that holds the keys: `processed_messages`, unless another is
/// named here and in the attribute (`table = "inbox.seen"`).
///
/// # Examples
///
/// ```
/// use idempotent_runtime::Table;
///
/// assert_eq!(Table::default().to_string(), "processed_messages");
/// assert_eq!(Table::named("inbox.seen")?.to_string(), "inbox.seen");
/// assert!(Table::named("Robert'); --").is_err());
/// # Ok::<(), idempotent_runtime::Error>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Table {
    /// `name` or `schema.name`, validated.
    qualified: Cow<'static, str>,
}

impl Table {
    /// Names another table, optionally with a schema (on MariaDB: a database,
    /// on SQLite: an attached one).
    ///
    /// # Errors
    ///
    /// Each of the two names is 1 to 63 of `a–z`, `0–9` and `_`, and does not
    /// start with a digit: lower case, so that it means the same on every
    /// database.
    pub fn named(name: impl Into<Cow<'static, str>>) -> Result<Self, Error> {
        let qualified = name.into();
        if is_table_name(&qualified) {
            return Ok(Self { qualified });
        }
        Err(Error::new(Cause::Table(format!(
            "`{qualified}` is not a table name: write `name` or `schema.name` in lower-case letters, digits and `_`"
        ))))
    }

    /// Of a name that the attribute has validated.
    pub(crate) const fn literal(name: &'static str) -> Self {
        Self {
            qualified: Cow::Borrowed(name),
        }
    }

    /// Makes the table unless it exists, and verifies it. It may run any number
    /// of times, from many processes at once. On Postgres a missing schema is
    /// made too.
    ///
    /// A table without an index on `expires_at` gets one, for the sake of
    /// [pruning](Self::pruner). On Postgres claims wait while it is built, about a
    /// second for each million rows that expire: to avoid that, make it yourself
    /// with `CREATE INDEX CONCURRENTLY`. Where the role may not make it, or a transaction
    /// holds the table for seconds, the table stays as it is.
    ///
    /// Errors that may pass are tried again, as [`transact!`](crate::transact) does: a cut
    /// connection, a database that starts, and on Galera other nodes that make the table too.
    ///
    /// # Errors
    ///
    /// As [`verify_schema`](Self::verify_schema), and whatever the database
    /// answers, for instance that the role may not create tables.
    ///
    /// # Cancel safety
    ///
    /// Dropped before the end, it leaves the whole table or none. The index may be
    /// missing; it comes with the next call.
    pub async fn migrate<DB: Store>(&self, pool: &Pool<DB>) -> Result<(), Error> {
        let mut backoff = Backoff::new();
        for _ in 1..TRIES {
            match self.try_migrate(pool).await {
                Err(error) if error.is_retryable() => {
                    tokio::time::sleep(backoff.pause()).await;
                }
                done => return done,
            }
        }
        self.try_migrate(pool).await
    }

    async fn try_migrate<DB: Store>(&self, pool: &Pool<DB>) -> Result<(), Error> {
        let mut conn = pool.acquire().await?;
        if DB::inspect(&mut conn, self).await?.is_none() {
            DB::create(&mut conn, self).await?;
        }
        self.check::<DB>(&mut conn).await?;
        Ok(DB::add_index(&mut conn, self).await?)
    }

    /// Verifies that the table can do its work: the columns and their types,
    /// the unique key on `(scope, key)`, and that a claim can leave every other
    /// column to its default. For services that run their own migrations.
    ///
    /// An index on `expires_at` is not required: without it
    /// [pruning](Self::pruner) works too, but reads the whole table for each batch.
    ///
    /// # Errors
    ///
    /// Says everything that is wrong, and the way out.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    pub async fn verify_schema<DB: Store>(&self, pool: &Pool<DB>) -> Result<(), Error> {
        self.check::<DB>(&mut *pool.acquire().await?).await
    }

    /// Returns the statements that make the table, each ended by a semicolon, for
    /// people who run their own migrations. On Postgres they make the schema too,
    /// if one is named.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")] {
    /// let sql = idempotent_runtime::Table::default().schema_sql::<sqlx::Sqlite>();
    /// assert!(sql.starts_with("CREATE TABLE IF NOT EXISTS \"processed_messages\""));
    /// # }
    /// ```
    #[must_use]
    pub fn schema_sql<DB: Store>(&self) -> String {
        DB::schema(self).join(";\n") + ";\n"
    }

    async fn check<DB: Store>(&self, conn: &mut DB::Connection) -> Result<(), Error> {
        let Some(faults) = DB::inspect(conn, self).await? else {
            return Err(Error::new(Cause::Table(format!(
                "table `{self}` does not exist: run `migrate`, or the statements of `schema_sql`"
            ))));
        };
        if faults.is_empty() {
            return Ok(());
        }
        Err(Error::new(Cause::Table(format!(
            "table `{self}` cannot hold idempotency keys: {}; name another table (`Table::named`, and \
             `table = \"…\"` in the attribute), or rename this one, run `migrate` and import its keys",
            faults.join("; ")
        ))))
    }

    pub(crate) fn schema(&self) -> Option<&str> {
        self.qualified.split_once('.').map(|(schema, _)| schema)
    }

    pub(crate) fn name(&self) -> &str {
        self.qualified
            .split_once('.')
            .map_or(&self.qualified, |(_, name)| name)
    }

    pub(crate) fn quoted(&self, quote: char) -> String {
        let parts: Vec<_> = self
            .qualified
            .split('.')
            .map(|part| format!("{quote}{part}{quote}"))
            .collect();
        parts.join(".")
    }
}

impl Default for Table {
    fn default() -> Self {
        Self::literal("processed_messages")
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.qualified)
    }
}

/// Makes the default table: see [`Table::migrate`].
///
/// # Errors
///
/// As [`Table::migrate`].
///
/// # Cancel safety
///
/// As [`Table::migrate`].
pub async fn migrate<DB: Store>(pool: &Pool<DB>) -> Result<(), Error> {
    Table::default().migrate(pool).await
}

/// Verifies the default table: see [`Table::verify_schema`].
///
/// # Errors
///
/// As [`Table::verify_schema`].
///
/// # Cancel safety
///
/// It only reads.
pub async fn verify_schema<DB: Store>(pool: &Pool<DB>) -> Result<(), Error> {
    Table::default().verify_schema(pool).await
}

/// Returns the statements that make the default table: see
/// [`Table::schema_sql`].
#[must_use]
pub fn schema_sql<DB: Store>() -> String {
    Table::default().schema_sql::<DB>()
}

/// A column, as a database describes it.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: String,
    /// Its type holds what is put in, and gives it back unchanged.
    pub(crate) fits: bool,
    pub(crate) absence: Absence,
    /// Compares bytes, not letters.
    pub(crate) is_exact: bool,
}

/// What a row gets that does not name the column.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Absence {
    Null,
    Default,
    Refused,
}

const OURS: [&str; 6] = [
    "scope",
    "key",
    "processed_at",
    "expires_at",
    "fingerprint",
    "result",
];

/// Says everything that is wrong with a table of these columns.
pub(crate) fn faults(
    columns: &[Column],
    has_unique_key: bool,
    is_ordinary: bool,
    is_rewritten: bool,
) -> Vec<String> {
    let mut faults = Vec::new();
    if !is_ordinary {
        faults.push("it is not an ordinary table with transactions".to_owned());
    }
    if is_rewritten {
        faults.push("a trigger or rule may change what is inserted".to_owned());
    }
    for name in OURS {
        match columns.iter().find(|column| column.name == name) {
            None => faults.push(format!("it has no column `{name}`")),
            Some(column) => faults.extend(column.faults()),
        }
    }
    for column in columns.iter().filter(|column| !column.is_key()) {
        if column.absence == Absence::Refused {
            let name = &column.name;
            faults.push(format!("its column `{name}` is NOT NULL without a default"));
        }
    }
    if !has_unique_key {
        faults.push("it has no unique key on exactly (scope, key)".to_owned());
    }
    faults
}

impl Column {
    fn is_key(&self) -> bool {
        matches!(&*self.name, "scope" | "key")
    }

    fn faults(&self) -> Vec<String> {
        let Self { name, kind, .. } = self;
        let mut faults = Vec::new();
        if !self.fits {
            faults.push(format!("its column `{name}` has type {kind}"));
        } else if self.is_key() && !self.is_exact {
            faults.push(format!(
                "its column `{name}` has a collation for which different keys are equal"
            ));
        }
        if self.absence == Absence::Null && (self.is_key() || name == "processed_at") {
            faults.push(format!("its column `{name}` may be NULL"));
        }
        faults
    }
}

/// `name` or `schema.name`, each `[a-z_][a-z0-9_]{0,62}`.
const fn is_table_name(text: &str) -> bool {
    const LONGEST: usize = 63; // an identifier on Postgres; MariaDB takes 64

    let bytes = text.as_bytes();
    let (mut position, mut length, mut dots) = (0, 0, 0);
    while position < bytes.len() {
        match bytes[position] {
            b'a'..=b'z' | b'_' => length += 1,
            b'0'..=b'9' if length > 0 => length += 1,
            b'.' if length > 0 && dots == 0 => {
                dots = 1;
                length = 0;
            }
            _ => return false,
        }
        if length > LONGEST {
            return false;
        }
        position += 1;
    }
    length > 0
}

#[cfg(test)]
mod tests {
    use super::is_table_name;

    #[test]
    fn table_names() {
        for name in [
            "a",
            "_",
            "processed_messages",
            "inbox.seen",
            "a1.b2",
            &"x".repeat(63),
        ] {
            assert!(is_table_name(name), "{name}");
        }
        for name in [
            "",
            ".",
            "a.",
            ".a",
            "a.b.c",
            "1a",
            "a.1",
            "A",
            "a b",
            "a\"b",
            "ä",
            &"x".repeat(64),
        ] {
            assert!(!is_table_name(name), "{name}");
        }
    }
}
