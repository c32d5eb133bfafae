//! The second line of defence: whether the business table's own unique constraint
//! has the grain of the key.

use std::fmt::Display;

use sqlx::Pool;

use crate::error::{Cause, Error};
use crate::session::Session;
use crate::store::{Catalog, Relation, Store};

mod grain;
mod judgement;
mod name;

use judgement::Backstop;
pub(crate) use name::TableName;

/// Verifies that a business table has a unique constraint, or index, on exactly the
/// columns of the key: then the database refuses a second effect even where the
/// application is wrong. For start-up, and for tests.
///
/// The order of the columns does not matter. More than the constraint's presence is
/// looked at, because both kinds of a wrong one stay unseen until it is too late:
///
/// - *coarser*: a unique index on some of the columns, also beside the right one, refuses
///   rows that are legitimate. With `UNIQUE (event_id)` the e-mail goes out, and the
///   push notice of the same event is an error. So does one that compares by a collation
///   for which `EMAIL` and `email` are equal, or takes the first characters only, or has a
///   column that is generated from `event_id`, or a WHERE that holds for both channels. One
///   whose WHERE holds for one channel, by `=` or `IS NULL`, is a rule of that channel.
/// - *finer*: one on more columns lets a duplicate through, and so do NULLs, which no
///   unique index takes for equal (but for Postgres' `NULLS NOT DISTINCT`, and where a
///   second index is on the rest of the key `WHERE channel IS NULL`), and a WHERE. Tables
///   that inherit from it are not covered. On SQLite, a constraint with `ON CONFLICT IGNORE`
///   or `REPLACE` refuses nothing.
///
/// The table is named as the catalog has it, optionally with a schema (on MariaDB: a
/// database, on SQLite: an attached one); a name with a dot in it stands in quotes, as in
/// SQL. Of a partitioned table the indexes of the whole are looked at.
///
/// # Limitations
///
/// An index on some columns of the key and on others, such as `(event_id, tenant_id)`, is
/// passed over: where an event has one tenant, it refuses the second channel, too, and no
/// catalog tells that. Trailing blanks, which some types and collations pass over, are not
/// looked at, nor are texts of digits in an integer column of SQLite, where `'007'` is 7.
///
/// # Errors
///
/// Says everything that is wrong: no such table or column, missing, coarser, finer; and
/// for each what to run. Besides, whatever the database answers.
///
/// It needs no right to the table on Postgres, and any on MariaDB, whose catalog hides a
/// table otherwise.
///
/// # Cancel safety
///
/// It only reads.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "sqlite")] mod example {
/// use idempotent_runtime::verify_backstop;
/// use sqlx::sqlite::SqlitePoolOptions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
/// sqlx::raw_sql("CREATE TABLE notifications (event_id TEXT NOT NULL, channel TEXT NOT NULL)")
///     .execute(&pool)
///     .await?;
/// let missing = verify_backstop(&pool, "notifications", ["event_id", "channel"]).await;
/// assert_eq!(
///     missing.unwrap_err().to_string(),
///     "table `notifications` has no unique constraint on the key (event_id, channel): \
///      a duplicate would get through; run CREATE UNIQUE INDEX \"notifications_backstop\" \
///      ON \"notifications\" (\"event_id\", \"channel\")"
/// );
///
/// sqlx::raw_sql("CREATE UNIQUE INDEX once ON notifications (event_id, channel)")
///     .execute(&pool)
///     .await?;
/// verify_backstop(&pool, "notifications", ["event_id", "channel"]).await?;
/// # Ok(())
/// # }
/// # }
/// # fn main() {
/// #     #[cfg(feature = "sqlite")] example::main().unwrap();
/// # }
/// ```
///
/// # Example: the trap
///
/// ```
/// # #[cfg(feature = "sqlite")] mod example {
/// # use idempotent_runtime::verify_backstop;
/// # use sqlx::sqlite::SqlitePoolOptions;
/// # #[tokio::main(flavor = "current_thread")]
/// # pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
/// sqlx::raw_sql(
///     "CREATE TABLE notifications (event_id TEXT NOT NULL, channel TEXT NOT NULL);
///      CREATE UNIQUE INDEX once ON notifications (event_id, channel);
///      CREATE UNIQUE INDEX once_per_event ON notifications (event_id)",
/// )
/// .execute(&pool)
/// .await?;
/// let coarser = verify_backstop(&pool, "notifications", ["event_id", "channel"]).await;
/// assert_eq!(
///     coarser.unwrap_err().to_string(),
///     "unique index `once_per_event` of table `notifications` is coarser than the key \
///      (event_id, channel): it would refuse a row that differs in `channel` only; \
///      run DROP INDEX \"once_per_event\""
/// );
/// # Ok(())
/// # }
/// # }
/// # fn main() {
/// #     #[cfg(feature = "sqlite")] example::main().unwrap();
/// # }
/// ```
pub async fn verify_backstop<DB: Store>(
    pool: &Pool<DB>,
    table: &str,
    columns: impl IntoIterator<Item = impl Into<String>>,
) -> Result<(), Error> {
    let columns: Vec<String> = columns.into_iter().map(Into::into).collect();
    let table = TableName::parse(table).map_err(backstop)?;
    let mut session = Session::acquire(pool).await?;
    let read = read::<DB>(session.conn(), &table).await;
    let relation = session.done(read)?.map_err(backstop)?;
    Backstop::<DB>::new(&table, &relation, &columns)
        .and_then(|backstop| backstop.verify())
        .map_err(backstop)
}

fn backstop(fact: String) -> Error {
    Error::new(Cause::Backstop(fact))
}

/// Describes the table, or says that there is none.
async fn read<DB: Catalog>(
    conn: &mut DB::Connection,
    table: &TableName,
) -> Result<Result<Relation, String>, sqlx::Error> {
    match DB::describe(conn, table).await? {
        Some(relation) if relation.is_table => Ok(Ok(relation)),
        Some(_) => Ok(Err(format!(
            "`{table}` is not a table: name the one that is written to"
        ))),
        None => Ok(Err(no_table(table, &DB::namesakes(conn, table).await?))),
    }
}

fn no_table(table: &TableName, namesakes: &[String]) -> String {
    let way_out = if namesakes.is_empty() {
        "make it first, or name its schema".to_owned()
    } else {
        format!("did you mean {}?", ticked(namesakes, " or "))
    };
    format!("there is no table `{table}`: {way_out}")
}

fn ticked(names: &[impl Display], separator: &str) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(separator)
}
