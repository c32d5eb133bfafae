//! SQLite: pragmas, as tables, and for what they do not tell the statements that made
//! the table and its indexes.

use sqlx::sqlite::{Sqlite, SqliteConnection};
use sqlx::{AssertSqlSafe, Row as _, query, query_as, query_scalar};

use super::{Catalog, Column, Kind, Part, Relation, Unique, columns, uniques};
use crate::backstop::TableName;

mod made;

use made::Made;

/// In the order in which a bare name is looked up.
const TABLE: &str = "SELECT schema, type = 'table', strict FROM pragma_table_list WHERE name = ?2 COLLATE NOCASE \
     AND (?1 IS NULL OR schema = ?1 COLLATE NOCASE) ORDER BY schema <> 'temp', schema <> 'main' LIMIT 1";
/// A primary key without an index is the number of the row, and never NULL.
const COLUMNS: &str = "SELECT name, NOT (\"notnull\" OR pk AND NOT EXISTS \
     (SELECT 1 FROM pragma_index_list(?1, ?2) WHERE origin = 'pk')), NULL, NULL, '', upper(type), hidden \
     FROM pragma_table_xinfo(?1, ?2) ORDER BY cid";
/// Column -1 is the number of the row, -2 an expression.
const UNIQUES: &str = "WITH l AS MATERIALIZED (SELECT name, CASE origin WHEN 'pk' THEN 'primary key' WHEN 'u' THEN 'constraint' \
     ELSE 'index' END AS kind FROM pragma_index_list(?1, ?2) WHERE \"unique\"), \
     c AS MATERIALIZED (SELECT name, pk FROM pragma_table_xinfo(?1, ?2)) \
     SELECT l.name, l.kind, '', 0, NULL, CASE x.cid WHEN -1 THEN (SELECT c.name FROM c WHERE c.pk) ELSE x.name END, \
     CASE WHEN upper(x.coll) <> 'BINARY' THEN 'collation `' || x.coll || '`' END, NULL, x.seqno \
     FROM l JOIN pragma_index_xinfo(l.name, ?2) AS x WHERE x.key \
     UNION ALL SELECT '', 'primary key', '', 0, NULL, c.name, NULL, NULL, 0 FROM c \
     WHERE c.pk AND NOT EXISTS (SELECT 1 FROM l WHERE l.kind = 'primary key') ORDER BY 1, 9";
/// The table's own comes first.
const STATEMENTS: &str = "SELECT name, sql FROM {schema}.sqlite_master WHERE tbl_name = ?1 COLLATE NOCASE \
     AND type IN ('table', 'index') AND sql IS NOT NULL ORDER BY type = 'index'";
const NAMESAKES: &str = "SELECT schema || '.' || name FROM pragma_table_list \
     WHERE name = ?1 COLLATE NOCASE ORDER BY 1 LIMIT 5";

impl Catalog for Sqlite {
    const QUOTE: char = '"';
    const EXACTLY: &'static str = " COLLATE BINARY";
    const FOLDS_NAMES: bool = true;
    const ESCAPE: Option<char> = None;
    const HAS_BRACKETS: bool = true;

    async fn describe(
        conn: &mut SqliteConnection,
        table: &TableName,
    ) -> Result<Option<Relation>, sqlx::Error> {
        let found: Option<(String, bool, bool)> = query_as(TABLE)
            .bind(table.schema())
            .bind(table.name())
            .fetch_optional(&mut *conn)
            .await?;
        let Some((schema, is_table, is_strict)) = found else {
            return Ok(None);
        };
        let described = query(COLUMNS)
            .bind(table.name())
            .bind(&schema)
            .fetch_all(&mut *conn)
            .await?;
        let indexed = query(UNIQUES)
            .bind(table.name())
            .bind(&schema)
            .fetch_all(&mut *conn)
            .await?;
        let quoted = TableName::bare(&schema).quoted(Self::QUOTE);
        let statements = AssertSqlSafe(STATEMENTS.replace("{schema}", &quoted));
        let statements: Vec<(String, String)> = query_as(statements)
            .bind(table.name())
            .fetch_all(conn)
            .await?;
        let made = |of: &str| statements.iter().find(|(name, _)| name == of);
        let table = Made::by(statements.first().map_or("", |(_, sql)| sql));
        let mut columns = columns(&described)?;
        for (column, row) in columns.iter_mut().zip(&described) {
            let declared: String = row.try_get(5)?;
            column.folding = affinity(&declared, is_strict).map(str::to_owned);
            column.is_exact = column.folding.is_none() && table.compares_bytes(&column.name);
            if row.try_get::<i64, _>(6)? > 1 {
                column.generated = table.generated(&column.name);
            }
        }
        let mut uniques = uniques(&indexed)?;
        for unique in &mut uniques {
            match made(&unique.name) {
                Some((_, sql)) if unique.kind == Kind::Index => read_index(unique, &Made::by(sql)),
                _ => read_constraint(unique, &table),
            }
            read_affinity(unique, &columns);
        }
        Ok(Some(Relation {
            is_table,
            columns,
            uniques,
            partitioned_by: Vec::new(),
            heirs: Vec::new(),
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
            Kind::Constraint | Kind::Exclusion => {
                "make the table anew without that constraint".to_owned()
            }
            Kind::PrimaryKey => "make the table anew with another primary key".to_owned(),
        }
    }

    fn refuse_null(_table: &TableName, column: &Column) -> String {
        format!("make the table anew with `{}` NOT NULL", column.name)
    }

    fn compare_exactly(_table: &TableName, column: &Column) -> String {
        format!("make the table anew with `{}` TEXT", column.name)
    }
}

/// By what numbers in a text of digits are equal, of a column so declared, for which
/// `'007'` is 7. Those of an integer's are the rule, and no text.
fn affinity(declared: &str, is_strict: bool) -> Option<&'static str> {
    let has = |words: &[&str]| words.iter().any(|word| declared.contains(word));
    if declared.is_empty() || has(&["INT", "CHAR", "CLOB", "TEXT", "BLOB"]) {
        None
    } else if has(&["REAL", "FLOA", "DOUB"]) {
        Some("affinity REAL")
    } else {
        // It keeps everything as it comes in a table that is strict.
        (!is_strict).then_some("affinity NUMERIC")
    }
}

fn read_index(unique: &mut Unique, made: &Made<'_>) {
    let (expressions, filter) = made.index();
    unique.filter = filter;
    for (part, made) in unique.parts.iter_mut().zip(expressions) {
        if let Part::Expression(expression) = part {
            *expression = made;
        }
    }
}

fn read_constraint(unique: &mut Unique, table: &Made<'_>) {
    let columns: Vec<_> = unique.parts.iter().filter_map(Part::column).collect();
    let conflicts = table.conflicts();
    let conflict = conflicts.iter().find(|conflict| conflict.is_of(&columns));
    unique.flaw = conflict.map(|conflict| conflict.flaw);
}

fn read_affinity(unique: &mut Unique, columns: &[Column]) {
    for part in &mut unique.parts {
        if let Part::Column { name, folding } = part
            && folding.is_none()
        {
            let column = columns.iter().find(|column| column.name == *name);
            *folding = column.and_then(|column| column.folding.clone());
        }
    }
}
