//! What a database says of a table that is not ours: its columns and unique
//! indexes, and the statements that would change them.
//!
//! # The contract
//!
//! It only reads, and only the catalog, so that it needs no right to the table
//! beyond those of whom the catalog shows it to. Names are bound, or quoted where
//! they cannot be bound. Nothing of the ways out is run: they are told.
//!
//! The three backends hold the same items in the same order.

use std::fmt::Debug;

use sqlx::{ColumnIndex, Database, Decode, Row, Type};

use crate::backstop::TableName;

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

/// The seam between the check of a backstop and one database's catalog.
pub trait Catalog: Database {
    /// What stands around a name.
    const QUOTE: char;
    /// What follows a column in an index to make it tell different values apart,
    /// where an index can do that by itself.
    const EXACTLY: &'static str;
    /// Whether the names of columns are the same in either case.
    const FOLDS_NAMES: bool;

    /// Describes a table. `None`: there is none.
    fn describe(
        conn: &mut Self::Connection,
        table: &TableName,
    ) -> impl Future<Output = Result<Option<Relation>, sqlx::Error>> + Send;

    /// Finds tables of that name in whatever case and schema: `schema.name`.
    fn namesakes(
        conn: &mut Self::Connection,
        table: &TableName,
    ) -> impl Future<Output = Result<Vec<String>, sqlx::Error>> + Send;

    /// How to add a unique index of these columns, which are quoted.
    fn add_unique(table: &TableName, columns: &[String]) -> String;

    /// How to do without an index.
    fn drop_unique(table: &TableName, unique: &Unique) -> String;

    /// How to refuse NULL.
    fn refuse_null(table: &TableName, column: &Column) -> String;

    /// How to tell different values of a column apart.
    fn compare_exactly(table: &TableName, column: &Column) -> String;
}

/// A table, as a database describes it.
#[derive(Debug)]
pub struct Relation {
    /// Or a view, say, which has no index of its own.
    pub(crate) is_table: bool,
    pub(crate) columns: Vec<Column>,
    pub(crate) uniques: Vec<Unique>,
}

/// One of its columns.
#[derive(Debug)]
pub struct Column {
    pub(crate) name: String,
    pub(crate) is_nullable: bool,
    /// By what different values of it are equal.
    pub(crate) folding: Option<String>,
    /// Its type as it would have to be, for [`Catalog::refuse_null`] and
    /// [`Catalog::compare_exactly`].
    #[cfg_attr(
        not(any(feature = "mysql", feature = "postgres")),
        expect(dead_code, reason = "SQLite changes no column")
    )]
    pub(crate) definition: String,
}

/// One of its unique indexes.
#[derive(Debug)]
pub struct Unique {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) flaw: Option<Flaw>,
    pub(crate) nulls: Nulls,
    /// Its columns; expressions are not among them.
    pub(crate) parts: Vec<Part>,
    /// Columns that occur in its expressions and its WHERE, or may do so.
    pub(crate) mentioned: Vec<String>,
}

/// What stands behind a unique index.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// Nothing else.
    Index,
    /// A unique constraint.
    Constraint,
    /// The primary key.
    PrimaryKey,
}

/// Why a unique index does not guard what its columns say, or not now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Flaw {
    /// It has an expression.
    Expression,
    /// It has a WHERE.
    Partial,
    /// Its making was not finished, but it refuses what comes new.
    Invalid,
    /// Its making was not finished, and it refuses nothing.
    Unready,
    /// It is looked at when the transaction ends.
    Deferred,
}

/// Whether two NULLs are two values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Nulls {
    /// They are, as in the standard: both rows may stay.
    Distinct,
    /// They are one.
    Equal,
}

/// A column of an index.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) column: String,
    /// By what different values of it are equal.
    pub(crate) folding: Option<String>,
}

/// The rows of the statements `COLUMNS`: name, is nullable, what folds it, definition.
fn columns<'r, R: Row>(rows: &'r [R]) -> Result<Vec<Column>, sqlx::Error>
where
    usize: ColumnIndex<R>,
    bool: Decode<'r, R::Database> + Type<R::Database>,
    String: Decode<'r, R::Database> + Type<R::Database>,
{
    let column = |row: &'r R| {
        Ok(Column {
            name: row.try_get(0)?,
            is_nullable: row.try_get(1)?,
            folding: row.try_get(2)?,
            definition: row.try_get(3)?,
        })
    };
    rows.iter().map(column).collect()
}

/// The rows of the statements `UNIQUES`, in order, one for each column of an index:
/// name, kind and flaw of the index, whether its NULLs are equal, the column, whether
/// it is a part or mentioned, what folds it.
fn uniques<'r, R: Row>(rows: &'r [R]) -> Result<Vec<Unique>, sqlx::Error>
where
    usize: ColumnIndex<R>,
    bool: Decode<'r, R::Database> + Type<R::Database>,
    String: Decode<'r, R::Database> + Type<R::Database>,
{
    let mut uniques: Vec<Unique> = Vec::new();
    for row in rows {
        let name: String = row.try_get(0)?;
        let flaw = flaw(&row.try_get::<String, _>(2)?);
        if uniques.last().is_none_or(|unique| unique.name != name) {
            uniques.push(Unique {
                name,
                kind: kind(&row.try_get::<String, _>(1)?),
                flaw,
                nulls: nulls(row.try_get(3)?),
                parts: Vec::new(),
                mentioned: Vec::new(),
            });
        }
        let Some(unique) = uniques.last_mut() else {
            continue;
        };
        unique.flaw = unique.flaw.or(flaw);
        let Some(column) = row.try_get(4)? else {
            continue;
        };
        if row.try_get(5)? {
            let folding = row.try_get(6)?;
            unique.parts.push(Part { column, folding });
        } else {
            unique.mentioned.push(column);
        }
    }
    Ok(uniques)
}

fn kind(text: &str) -> Kind {
    match text {
        "primary key" => Kind::PrimaryKey,
        "constraint" => Kind::Constraint,
        _ => Kind::Index,
    }
}

fn flaw(text: &str) -> Option<Flaw> {
    match text {
        "expression" => Some(Flaw::Expression),
        "partial" => Some(Flaw::Partial),
        "invalid" => Some(Flaw::Invalid),
        "unready" => Some(Flaw::Unready),
        "deferred" => Some(Flaw::Deferred),
        _ => None,
    }
}

const fn nulls(are_equal: bool) -> Nulls {
    if are_equal {
        Nulls::Equal
    } else {
        Nulls::Distinct
    }
}
