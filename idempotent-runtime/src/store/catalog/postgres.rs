//! Postgres: the catalog shows every table to everybody.

use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgConnection, Postgres};
use sqlx::{query, query_as, query_scalar};

use super::{Catalog, Column, Kind, Relation, Unique, columns, uniques};
use crate::backstop::TableName;

/// Not `to_regclass`, which asks for the right to use the schema.
const TABLE: &str = "SELECT c.oid, c.relkind IN ('r', 'p') FROM pg_class c \
     JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = $2 AND c.relkind IN ('r', 'p', 'v', 'm', 'f') \
     AND CASE WHEN $1::text IS NULL THEN pg_table_is_visible(c.oid) ELSE n.nspname = $1 END";
const COLUMNS: &str = "SELECT a.attname::text, NOT a.attnotnull, CASE WHEN t.typname = 'citext' THEN 'type `citext`' \
     WHEN NOT l.collisdeterministic THEN 'collation `' || l.collname || '`' END, \
     CASE t.typname WHEN 'citext' THEN 'text' ELSE format_type(a.atttypid, a.atttypmod) END || ' COLLATE \"C\"' \
     FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation l ON l.oid = a.attcollation \
     WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";
/// `indnullsnotdistinct` came with Postgres 15. What an expression or a WHERE
/// mentions is what the index depends on; that goes for INCLUDE, too.
const UNIQUES: &str = "SELECT c.relname::text, \
     CASE k.contype WHEN 'p' THEN 'primary key' WHEN 'u' THEN 'constraint' ELSE 'index' END, \
     CASE WHEN NOT i.indisready THEN 'unready' WHEN i.indexprs IS NOT NULL THEN 'expression' WHEN i.indpred IS NOT NULL THEN 'partial' \
     WHEN NOT i.indisvalid THEN 'invalid' WHEN k.condeferred THEN 'deferred' ELSE '' END, \
     coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false), p.name, coalesce(p.is_part, false), p.folding \
     FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
     LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u') \
     LEFT JOIN LATERAL (SELECT n, a.attname::text AS name, true AS is_part, \
     CASE WHEN o.opcname = 'citext_ops' THEN 'type `citext`' \
     WHEN NOT l.collisdeterministic THEN 'collation `' || l.collname || '`' END AS folding \
     FROM generate_series(0, i.indnkeyatts - 1) AS n \
     JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[n] \
     LEFT JOIN pg_collation l ON l.oid = i.indcollation[n] LEFT JOIN pg_opclass o ON o.oid = i.indclass[n] \
     UNION ALL SELECT NULL, a.attname::text, false, NULL FROM pg_depend d \
     JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid \
     WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid \
     AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid \
     AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)) AS p ON true \
     WHERE i.indrelid = $1 AND i.indisunique AND i.indislive ORDER BY c.relname, p.n";
const NAMESAKES: &str = "SELECT n.nspname || '.' || c.relname FROM pg_class c \
     JOIN pg_namespace n ON n.oid = c.relnamespace WHERE lower(c.relname) = lower($1) \
     AND c.relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY 1 LIMIT 5";

impl Catalog for Postgres {
    const QUOTE: char = '"';
    const EXACTLY: &'static str = "";
    const FOLDS_NAMES: bool = false;

    async fn describe(
        conn: &mut PgConnection,
        table: &TableName,
    ) -> Result<Option<Relation>, sqlx::Error> {
        let found: Option<(Oid, bool)> = query_as(TABLE)
            .bind(table.schema())
            .bind(table.name())
            .fetch_optional(&mut *conn)
            .await?;
        let Some((oid, is_table)) = found else {
            return Ok(None);
        };
        let described = query(COLUMNS).bind(oid).fetch_all(&mut *conn).await?;
        let indexed = query(UNIQUES).bind(oid).fetch_all(conn).await?;
        Ok(Some(Relation {
            is_table,
            columns: columns(&described)?,
            uniques: uniques(&indexed)?,
        }))
    }

    async fn namesakes(
        conn: &mut PgConnection,
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
        match unique.kind {
            Kind::Index => {
                let index = table.sibling(&unique.name).quoted(Self::QUOTE);
                format!("run DROP INDEX {index}")
            }
            Kind::Constraint | Kind::PrimaryKey => {
                let name = TableName::bare(&unique.name).quoted(Self::QUOTE);
                let table = table.quoted(Self::QUOTE);
                format!("run ALTER TABLE {table} DROP CONSTRAINT {name}")
            }
        }
    }

    fn refuse_null(table: &TableName, column: &Column) -> String {
        let name = TableName::bare(&column.name).quoted(Self::QUOTE);
        let table = table.quoted(Self::QUOTE);
        format!("run ALTER TABLE {table} ALTER COLUMN {name} SET NOT NULL")
    }

    fn compare_exactly(table: &TableName, column: &Column) -> String {
        let name = TableName::bare(&column.name).quoted(Self::QUOTE);
        let table = table.quoted(Self::QUOTE);
        let definition = &column.definition;
        format!("run ALTER TABLE {table} ALTER COLUMN {name} TYPE {definition}")
    }
}
