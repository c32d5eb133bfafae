//! MariaDB: the catalog shows tables to whom has any right to them.

use sqlx::mysql::{MySql, MySqlConnection};
use sqlx::{query, query_scalar};

use super::{Catalog, Column, Flaw, Kind, Relation, Unique, columns, uniques};
use crate::backstop::TableName;

/// Schema and name as such, no more and no joins: the catalog opens the one table then, and not all
/// that the server has.
const TABLE: &str = "SELECT table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') FROM information_schema.tables \
     WHERE table_schema = coalesce(?, database()) AND table_name = ?";
/// An enumeration compares numbers. Only MariaDB shows defaults as they are written.
const COLUMNS: &str = "SELECT column_name, is_nullable = 'YES', \
     CASE WHEN collation_name NOT LIKE '%\\_bin' AND data_type NOT IN ('enum', 'set') \
     THEN concat('collation `', collation_name, '`') END, \
     concat(column_type, CASE WHEN collation_name IS NULL THEN '' WHEN data_type IN ('enum', 'set') \
     THEN concat(' COLLATE ', collation_name) ELSE concat(' COLLATE ', character_set_name, '_bin') END, ' NOT NULL', \
     CASE WHEN coalesce(column_default, 'NULL') = 'NULL' THEN '' ELSE concat(' DEFAULT ', column_default) END) \
     FROM information_schema.columns WHERE table_schema = coalesce(?, database()) AND table_name = ? \
     ORDER BY ordinal_position";
/// Only MySQL has expressions, in the place of a column.
const UNIQUES: &str = "SELECT index_name, IF(index_name = 'PRIMARY', 'primary key', 'index'), \
     IF(column_name IS NULL, 'expression', ''), false, column_name, true, \
     concat('its first ', sub_part, ' characters') FROM information_schema.statistics \
     WHERE table_schema = coalesce(?, database()) AND table_name = ? AND non_unique = 0 \
     ORDER BY index_name, seq_in_index";
const NAMESAKES: &str = "SELECT concat(table_schema, '.', table_name) FROM information_schema.tables \
     WHERE lower(table_name) = lower(?) ORDER BY 1 LIMIT 5";

impl Catalog for MySql {
    const QUOTE: char = '`';
    const EXACTLY: &'static str = "";
    const FOLDS_NAMES: bool = true;

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
            .fetch_all(conn)
            .await?;
        let columns = columns(&described)?;
        let mut uniques = uniques(&indexed)?;
        for unique in &mut uniques {
            complete(unique, &columns);
        }
        Ok(Some(Relation {
            is_table,
            columns,
            uniques,
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
            Kind::Index | Kind::Constraint => format!("run ALTER TABLE {table} DROP INDEX {name}"),
            Kind::PrimaryKey => format!("run ALTER TABLE {table} DROP PRIMARY KEY"),
        }
    }

    fn refuse_null(table: &TableName, column: &Column) -> String {
        Self::compare_exactly(table, column)
    }

    fn compare_exactly(table: &TableName, column: &Column) -> String {
        let name = TableName::bare(&column.name).quoted(Self::QUOTE);
        let table = table.quoted(Self::QUOTE);
        let definition = &column.definition;
        format!("run ALTER TABLE {table} MODIFY {name} {definition}")
    }
}

/// An index compares as its columns do. An expression may mention any of them.
fn complete(unique: &mut Unique, columns: &[Column]) {
    for part in &mut unique.parts {
        if part.folding.is_none() {
            let mut columns = columns.iter();
            let column = columns.find(|column| column.name == part.column);
            part.folding = column.and_then(|column| column.folding.clone());
        }
    }
    if unique.flaw == Some(Flaw::Expression) {
        unique.mentioned = columns.iter().map(|column| column.name.clone()).collect();
    }
}
