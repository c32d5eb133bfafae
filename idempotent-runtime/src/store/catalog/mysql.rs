//! MariaDB: the catalog shows tables to whom has any right to them.

use sqlx::error::DatabaseError;
use sqlx::mysql::{MySql, MySqlConnection, MySqlDatabaseError};
use sqlx::{AssertSqlSafe, Row as _, query, query_scalar};

use super::{Catalog, Column, Expression, Kind, Part, Relation, Unique, columns, uniques};
use crate::backstop::TableName;

mod shown;

use shown::{Definition, Shown};

/// Schema and name as such, no more and no joins: the catalog opens the one table then, and not all
/// that the server has.
const TABLE: &str = "SELECT table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') FROM information_schema.tables \
     WHERE table_schema = coalesce(?, database()) AND table_name = ?";
/// An enumeration compares numbers.
const COLUMNS: &str = "SELECT column_name, is_nullable = 'YES', \
     CASE WHEN collation_name NOT LIKE '%\\_bin' AND data_type NOT IN ('enum', 'set') \
     THEN concat('collation `', collation_name, '`') END, nullif(generation_expression, ''), \
     coalesce(concat(character_set_name, IF(collation_name LIKE '%nopad%', '_nopad_bin', '_bin')), '') \
     FROM information_schema.columns WHERE table_schema = coalesce(?, database()) AND table_name = ? \
     ORDER BY ordinal_position";
/// Only MySQL has expressions, in the place of a column.
const UNIQUES: &str = "SELECT index_name, IF(index_name = 'PRIMARY', 'primary key', 'index'), '', false, NULL, \
     column_name, concat('its first ', sub_part, ' characters'), NULL FROM information_schema.statistics \
     WHERE table_schema = coalesce(?, database()) AND table_name = ? AND non_unique = 0 \
     ORDER BY index_name, seq_in_index";
/// A history that is partitioned by its time asks for no column.
const PARTITIONED_BY: &str = "SELECT concat_ws(', ', partition_expression, subpartition_expression) \
     FROM information_schema.partitions WHERE table_schema = coalesce(?, database()) AND table_name = ? \
     AND partition_method <> 'SYSTEM_TIME' LIMIT 1";
/// `ER_TABLEACCESS_DENIED_ERROR`.
const ACCESS_DENIED: u16 = 1142;
const NAMESAKES: &str = "SELECT concat(table_schema, '.', table_name) FROM information_schema.tables \
     WHERE lower(table_name) = lower(?) ORDER BY 1 LIMIT 5";

impl Catalog for MySql {
    const QUOTE: char = '`';
    const EXACTLY: &'static str = "";
    const FOLDS_NAMES: bool = true;
    const ESCAPE: Option<char> = Some('\\');
    const HAS_BRACKETS: bool = false;

    async fn describe(
        conn: &mut MySqlConnection,
        table: &TableName,
    ) -> Result<Option<Relation>, sqlx::Error> {
        let found: Option<bool> = query_scalar(TABLE)
            .bind(table.schema())
            .bind(table.name())
            .fetch_optional(&mut *conn)
            .await?;
        let Some(is_table) = found else {
            return Ok(None);
        };
        let described = query(COLUMNS)
            .bind(table.schema())
            .bind(table.name())
            .fetch_all(&mut *conn)
            .await?;
        let indexed = query(UNIQUES)
            .bind(table.schema())
            .bind(table.name())
            .fetch_all(&mut *conn)
            .await?;
        let partitioned: Option<String> = query_scalar(PARTITIONED_BY)
            .bind(table.schema())
            .bind(table.name())
            .fetch_optional(&mut *conn)
            .await?;
        let mut columns = columns(&described)?;
        let mut uniques = uniques(&indexed)?;
        if is_table {
            let shown = show(conn, table).await?;
            for column in &mut columns {
                column.shown = shown.definition(&column.name).unwrap_or_default();
            }
            for unique in &mut uniques {
                complete(unique, &columns, &shown);
            }
        }
        let by = partitioned.map(|expression| partitioned_by(expression, &columns, &uniques));
        Ok(Some(Relation {
            is_table,
            columns,
            uniques,
            partitioned_by: by.unwrap_or_default(),
            heirs: Vec::new(),
        }))
    }

    async fn namesakes(
        conn: &mut MySqlConnection,
        table: &TableName,
    ) -> Result<Vec<String>, sqlx::Error> {
        query_scalar(NAMESAKES)
            .bind(table.name())
            .fetch_all(conn)
            .await
    }

    fn add_unique(table: &TableName, columns: &[String]) -> String {
        let table = table.quoted(Self::QUOTE);
        format!(
            "run ALTER TABLE {table} ADD UNIQUE ({})",
            columns.join(", ")
        )
    }

    fn drop_unique(table: &TableName, unique: &Unique) -> String {
        let name = TableName::bare(&unique.name).quoted(Self::QUOTE);
        let table = table.quoted(Self::QUOTE);
        match unique.kind {
            Kind::Index | Kind::Constraint | Kind::Exclusion => {
                format!("run ALTER TABLE {table} DROP INDEX {name}")
            }
            Kind::PrimaryKey => format!("run ALTER TABLE {table} DROP PRIMARY KEY"),
        }
    }

    fn refuse_null(table: &TableName, column: &Column) -> String {
        if column.generated.is_some() {
            return format!("make `{}` an ordinary column that is NOT NULL", column.name);
        }
        match Definition::parse(&column.shown) {
            Some(definition) => modify(table, column, &definition.not_null()),
            None => format!("make `{}` NOT NULL, {ALL_ELSE}", column.name),
        }
    }

    fn compare_exactly(table: &TableName, column: &Column) -> String {
        let collation = &column.exactly;
        match Definition::parse(&column.shown) {
            Some(definition) => modify(table, column, &definition.collated(collation)),
            None => format!("give `{}` COLLATE {collation}, {ALL_ELSE}", column.name),
        }
    }
}

/// Who may use columns only is shown nothing.
async fn show(conn: &mut MySqlConnection, table: &TableName) -> Result<Shown, sqlx::Error> {
    let show = format!("SHOW CREATE TABLE {}", table.quoted(MySql::QUOTE));
    match query(AssertSqlSafe(show)).fetch_one(conn).await {
        Ok(row) => Ok(Shown::new(row.try_get(1)?)),
        Err(sqlx::Error::Database(error)) if is_denied(&*error) => Ok(Shown::default()),
        Err(error) => Err(error),
    }
}

fn is_denied(error: &dyn DatabaseError) -> bool {
    let error = error.try_downcast_ref::<MySqlDatabaseError>();
    error.is_some_and(|error| error.number() == ACCESS_DENIED)
}

/// A column that is modified keeps only what is said again.
const ALL_ELSE: &str = "with all else that SHOW CREATE TABLE has of it";

fn modify(table: &TableName, column: &Column, definition: &Definition) -> String {
    let name = TableName::bare(&column.name).quoted(MySql::QUOTE);
    let table = table.quoted(MySql::QUOTE);
    format!("run ALTER TABLE {table} MODIFY {name} {definition}")
}

/// An index compares as its columns do, and the catalog of MariaDB has no place for its
/// expressions.
fn complete(unique: &mut Unique, columns: &[Column], shown: &Shown) {
    let expressions = shown.parts(&unique.name);
    for (at, part) in unique.parts.iter_mut().enumerate() {
        match part {
            Part::Column { name, folding } if folding.is_none() => {
                let column = columns.iter().find(|column| column.name == *name);
                *folding = column.and_then(|column| column.folding.clone());
            }
            Part::Column { .. } => {}
            Part::Expression(expression) => {
                let shown = expressions.get(at).cloned();
                *expression = Expression::new(shown.unwrap_or_default());
            }
        }
    }
}

/// The columns that say in which partition a row is; if none is named, the primary key's.
fn partitioned_by(expression: String, columns: &[Column], uniques: &[Unique]) -> Vec<String> {
    if expression.is_empty() {
        let mut uniques = uniques.iter();
        let primary_key = uniques.find(|unique| unique.kind == Kind::PrimaryKey);
        let parts = primary_key.into_iter().flat_map(|unique| &unique.parts);
        return parts.filter_map(Part::column).map(str::to_owned).collect();
    }
    let expression = Expression::new(expression);
    let names = columns.iter().map(|column| &column.name);
    names
        .filter(|name| expression.mentions::<MySql>(name))
        .cloned()
        .collect()
}
