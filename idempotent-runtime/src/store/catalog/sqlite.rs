//! SQLite: pragmas, as tables. What an index mentions they do not tell: it is
//! looked for in the text of the statement that made it.

use sqlx::sqlite::{Sqlite, SqliteConnection};
use sqlx::{AssertSqlSafe, query, query_as, query_scalar};

use super::{Catalog, Column, Kind, Relation, Unique, columns, uniques};
use crate::backstop::TableName;

/// In the order in which a bare name is looked up.
const TABLE: &str = "SELECT schema, type = 'table' FROM pragma_table_list WHERE name = ?2 COLLATE NOCASE \
     AND (?1 IS NULL OR schema = ?1 COLLATE NOCASE) ORDER BY schema <> 'temp', schema <> 'main' LIMIT 1";
/// A primary key without an index is the number of the row, and never NULL. Collations are told of
/// indexes only.
const COLUMNS: &str = "SELECT name, NOT (\"notnull\" OR pk AND NOT EXISTS \
     (SELECT 1 FROM pragma_index_list(?1, ?2) WHERE origin = 'pk')), NULL, '' FROM pragma_table_xinfo(?1, ?2) ORDER BY cid";
/// Column -1 is the number of the row, -2 an expression.
const UNIQUES: &str = "WITH l AS MATERIALIZED (SELECT l.name, CASE l.origin WHEN 'pk' THEN 'primary key' WHEN 'u' THEN 'constraint' \
     ELSE 'index' END AS kind, CASE WHEN EXISTS (SELECT 1 FROM pragma_index_xinfo(l.name, ?2) AS x WHERE x.key AND x.cid = -2) \
     THEN 'expression' WHEN l.partial THEN 'partial' ELSE '' END AS flaw FROM pragma_index_list(?1, ?2) AS l WHERE l.\"unique\"), \
     c AS MATERIALIZED (SELECT name, pk FROM pragma_table_xinfo(?1, ?2)) \
     SELECT l.name, l.kind, l.flaw, 0, CASE x.cid WHEN -1 THEN (SELECT c.name FROM c WHERE c.pk) ELSE x.name END, 1, \
     CASE WHEN x.coll <> 'BINARY' THEN 'collation `' || x.coll || '`' END, x.seqno \
     FROM l JOIN pragma_index_xinfo(l.name, ?2) AS x WHERE x.key AND x.cid > -2 \
     UNION ALL SELECT l.name, l.kind, l.flaw, 0, c.name, 0, NULL, 1000 FROM l JOIN {schema}.sqlite_master AS m \
     ON m.type = 'index' AND m.name = l.name LEFT JOIN c \
     ON instr(lower(substr(m.sql, instr(m.sql, '('))), lower(c.name)) WHERE l.flaw <> '' \
     UNION ALL SELECT '', 'primary key', '', 0, c.name, 1, NULL, 0 FROM c \
     WHERE c.pk AND NOT EXISTS (SELECT 1 FROM l WHERE l.kind = 'primary key') ORDER BY 1, 8";
const NAMESAKES: &str = "SELECT schema || '.' || name FROM pragma_table_list \
     WHERE name = ?1 COLLATE NOCASE ORDER BY 1 LIMIT 5";

impl Catalog for Sqlite {
    const QUOTE: char = '"';
    const EXACTLY: &'static str = " COLLATE BINARY";
    const FOLDS_NAMES: bool = true;

    async fn describe(
        conn: &mut SqliteConnection,
        table: &TableName,
    ) -> Result<Option<Relation>, sqlx::Error> {
        let found: Option<(String, bool)> = query_as(TABLE)
            .bind(table.schema())
            .bind(table.name())
            .fetch_optional(&mut *conn)
            .await?;
        let Some((schema, is_table)) = found else {
            return Ok(None);
        };
        let described = query(COLUMNS)
            .bind(table.name())
            .bind(&schema)
            .fetch_all(&mut *conn)
            .await?;
        let quoted = TableName::bare(&schema).quoted(Self::QUOTE);
        let indexed = query(AssertSqlSafe(UNIQUES.replace("{schema}", &quoted)))
            .bind(table.name())
            .bind(&schema)
            .fetch_all(conn)
            .await?;
        Ok(Some(Relation {
            is_table,
            columns: columns(&described)?,
            uniques: uniques(&indexed)?,
        }))
    }

    async fn namesakes(
        conn: &mut SqliteConnection,
        table: &TableName,
    ) -> Result<Vec<String>, sqlx::Error> {
        query_scalar(NAMESAKES)
            .bind(table.name())
            .fetch_all(conn)
            .await
    }

    fn add_unique(table: &TableName, columns: &[String]) -> String {
        let index = table.sibling(&format!("{}_backstop", table.name()));
        let index = index.quoted(Self::QUOTE);
        let table = TableName::bare(table.name()).quoted(Self::QUOTE);
        format!(
            "run CREATE UNIQUE INDEX {index} ON {table} ({})",
            columns.join(", ")
        )
    }

    fn drop_unique(table: &TableName, unique: &Unique) -> String {
        match unique.kind {
            Kind::Index => {
                let index = table.sibling(&unique.name).quoted(Self::QUOTE);
                format!("run DROP INDEX {index}")
            }
            Kind::Constraint => "make the table anew without that constraint".to_owned(),
            Kind::PrimaryKey => "make the table anew with another primary key".to_owned(),
        }
    }

    fn refuse_null(_table: &TableName, column: &Column) -> String {
        format!("make the table anew with `{}` NOT NULL", column.name)
    }

    fn compare_exactly(_table: &TableName, column: &Column) -> String {
        format!("make the table anew with `{}` COLLATE BINARY", column.name)
    }
}
