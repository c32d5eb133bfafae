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

mod expression;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;

pub(crate) use expression::Expression;
pub(crate) use sql::same;

/// The seam between the check of a backstop and one database's catalog.
pub trait Catalog: Database {
    /// What stands around a name.
    const QUOTE: char;
    /// What follows a column in an index to make it tell different values apart,
    /// where an index can do that by itself.
    const EXACTLY: &'static str;
    /// Whether the names of columns are the same in either case.
    const FOLDS_NAMES: bool;
    /// What takes the meaning from the character that follows, in a string.
    const ESCAPE: Option<char>;
    /// Whether a name may stand in brackets.
    const HAS_BRACKETS: bool;

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
    /// The columns, or expressions, that say in which partition a row is: every unique
    /// index needs them.
    pub(crate) partitioned_by: Vec<String>,
    /// Tables whose rows are its rows too, and which its indexes do not cover; quoted.
    pub(crate) heirs: Vec<String>,
}

/// One of its columns.
#[derive(Debug)]
pub struct Column {
    pub(crate) name: String,
    pub(crate) is_nullable: bool,
    /// By what different values of it are equal.
    pub(crate) folding: Option<String>,
    /// Whether `=` tells different values of it apart, in a WHERE.
    pub(crate) is_exact: bool,
    /// What makes its value, where that is no statement.
    pub(crate) generated: Option<Expression>,
    /// What it would have to be to compare exactly, for [`Catalog::compare_exactly`].
    #[cfg_attr(
        not(any(feature = "mysql", feature = "postgres")),
        expect(dead_code, reason = "SQLite changes no column")
    )]
    pub(crate) exactly: String,
    /// Its definition, as far as the database shows it.
    #[cfg_attr(
        not(feature = "mysql"),
        expect(dead_code, reason = "only MySQL defines a column anew to change it")
    )]
    pub(crate) shown: String,
}

/// One of its unique indexes.
#[derive(Debug)]
pub struct Unique {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) flaw: Option<Flaw>,
    pub(crate) nulls: Nulls,
    pub(crate) parts: Vec<Part>,
    /// Its WHERE.
    pub(crate) filter: Option<Expression>,
}

impl Part {
    /// The column that it is.
    #[cfg(any(feature = "mysql", feature = "sqlite"))]
    fn column(&self) -> Option<&str> {
        match self {
            Self::Column { name, .. } => Some(name),
            Self::Expression(_) => None,
        }
    }
}

impl Unique {
    /// Whether different values of the column are equal to it.
    pub(crate) fn folds(&self, column: &str) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Column { name, folding } => name == column && folding.is_some(),
            Part::Expression(_) => false,
        })
    }
}

/// What stands behind a unique index.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// Nothing else.
    Index,
    /// A unique constraint.
    Constraint,
    /// An exclusion constraint.
    Exclusion,
    /// The primary key.
    PrimaryKey,
}

/// Why a unique index does not guard what its columns say, or not now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Flaw {
    /// Its making was not finished, but it refuses what comes new.
    Invalid,
    /// Its making was not finished, and it refuses nothing.
    Unready,
    /// It is looked at when the transaction ends.
    Deferred,
    /// It passes over what it should refuse.
    #[cfg_attr(
        not(feature = "sqlite"),
        expect(dead_code, reason = "SQLite alone has it")
    )]
    Ignores,
    /// It lets what it should refuse take the place of what is there.
    #[cfg_attr(
        not(feature = "sqlite"),
        expect(dead_code, reason = "SQLite alone has it")
    )]
    Replaces,
}

/// Whether two NULLs are two values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Nulls {
    /// They are, as in the standard: both rows may stay.
    Distinct,
    /// They are one.
    Equal,
}

/// What an index compares.
#[derive(Debug)]
pub(crate) enum Part {
    /// A column.
    Column {
        name: String,
        /// By what different values of it are equal.
        folding: Option<String>,
    },
    /// An expression, or a column by another operator than `=`.
    Expression(Expression),
}

/// The rows of the statements `COLUMNS`: name, is nullable, what folds it, what makes it,
/// what it would have to be.
fn columns<'r, R: Row>(rows: &'r [R]) -> Result<Vec<Column>, sqlx::Error>
where
    usize: ColumnIndex<R>,
    bool: Decode<'r, R::Database> + Type<R::Database>,
    String: Decode<'r, R::Database> + Type<R::Database>,
{
    let column = |row: &'r R| {
        let folding: Option<String> = row.try_get(2)?;
        let generated: Option<String> = row.try_get(3)?;
        Ok(Column {
            name: row.try_get(0)?,
            is_nullable: row.try_get(1)?,
            is_exact: folding.is_none(),
            folding,
            generated: generated.map(Expression::new),
            exactly: row.try_get(4)?,
            shown: String::new(),
        })
    };
    rows.iter().map(column).collect()
}

/// The rows of the statements `UNIQUES`, in order, one for each part of an index: name,
/// kind and flaw of the index, whether its NULLs are equal, its WHERE; the column, what
/// folds it, or else the expression.
fn uniques<'r, R: Row>(rows: &'r [R]) -> Result<Vec<Unique>, sqlx::Error>
where
    usize: ColumnIndex<R>,
    bool: Decode<'r, R::Database> + Type<R::Database>,
    String: Decode<'r, R::Database> + Type<R::Database>,
{
    let mut uniques: Vec<Unique> = Vec::new();
    for row in rows {
        let name: String = row.try_get(0)?;
        let part = match row.try_get(5)? {
            Some(name) => Part::Column {
                name,
                folding: row.try_get(6)?,
            },
            None => Part::Expression(Expression::new(
                row.try_get::<Option<String>, _>(7)?.unwrap_or_default(),
            )),
        };
        match uniques.last_mut().filter(|unique| unique.name == name) {
            Some(unique) => unique.parts.push(part),
            None => uniques.push(Unique {
                name,
                kind: kind(&row.try_get::<String, _>(1)?),
                flaw: flaw(&row.try_get::<String, _>(2)?),
                nulls: nulls(row.try_get(3)?),
                parts: vec![part],
                filter: row.try_get::<Option<String>, _>(4)?.map(Expression::new),
            }),
        }
    }
    Ok(uniques)
}

fn kind(text: &str) -> Kind {
    match text {
        "primary key" => Kind::PrimaryKey,
        "constraint" => Kind::Constraint,
        "exclusion" => Kind::Exclusion,
        _ => Kind::Index,
    }
}

fn flaw(text: &str) -> Option<Flaw> {
    match text {
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
