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
     CASE WHEN a.attgenerated <> '' THEN pg_get_expr(d.adbin, d.adrelid) END, \
     CASE t.typname WHEN 'citext' THEN 'text' ELSE format_type(a.atttypid, a.atttypmod) END || ' COLLATE \"C\"' \
     FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation l ON l.oid = a.attcollation \
     LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
     WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";
/// `indnullsnotdistinct` came with Postgres 15.
const UNIQUES: &str = "SELECT c.relname::text, \
     CASE k.contype WHEN 'p' THEN 'primary key' WHEN 'u' THEN 'constraint' WHEN 'x' THEN 'exclusion' ELSE 'index' END, \
     CASE WHEN NOT i.indisready THEN 'unready' WHEN NOT i.indisvalid THEN 'invalid' WHEN k.condeferred THEN 'deferred' ELSE '' END, \
     coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false), pg_get_expr(i.indpred, i.indrelid), \
     CASE WHEN coalesce(p.oprname = '=', true) THEN a.attname::text END, \
     CASE WHEN o.opcname = 'citext_ops' THEN 'type `citext`' \
     WHEN NOT l.collisdeterministic THEN 'collation `' || l.collname || '`' END, pg_get_indexdef(i.indexrelid, n + 1, false) \
     FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
     LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x') \
     CROSS JOIN generate_series(0, i.indnkeyatts - 1) AS n \
     LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[n] \
     LEFT JOIN pg_collation l ON l.oid = i.indcollation[n] LEFT JOIN pg_opclass o ON o.oid = i.indclass[n] \
     LEFT JOIN pg_operator p ON p.oid = k.conexclop[n + 1] \
     WHERE i.indrelid = $1 AND (i.indisunique OR i.indisexclusion) AND i.indislive ORDER BY c.relname, n";
/// Parts that are partitioned themselves ask for their columns, too.
const PARTITIONED_BY: &str = "SELECT DISTINCT coalesce(a.attname::text, pg_get_partkeydef(p.partrelid)) \
     FROM pg_partition_tree($1) AS t JOIN pg_partitioned_table p ON p.partrelid = t.relid \
     CROSS JOIN unnest(p.partattrs::int2[]) AS n \
     LEFT JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = n ORDER BY 1";
const HEIRS: &str = "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_inherits i \
     JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE i.inhparent = $1 AND NOT c.relispartition ORDER BY 1";
const NAMESAKES: &str = "SELECT n.nspname || '.' || c.relname FROM pg_class c \
     JOIN pg_namespace n ON n.oid = c.relnamespace WHERE lower(c.relname) = lower($1) \
     AND c.relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY 1 LIMIT 5";

impl Catalog for Postgres {
    const QUOTE: char = '"';
    const EXACTLY: &'static str = "";
    const FOLDS_NAMES: bool = false;
    const ESCAPE: Option<char> = None;
    const HAS_BRACKETS: bool = false;

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
        let indexed = query(UNIQUES).bind(oid).fetch_all(&mut *conn).await?;
        let partitioned_by = query_scalar(PARTITIONED_BY).bind(oid);
        let partitioned_by = partitioned_by.fetch_all(&mut *conn).await?;
        let heirs = query_scalar(HEIRS).bind(oid).fetch_all(conn).await?;
        Ok(Some(Relation {
            is_table,
            columns: columns(&described)?,
            uniques: uniques(&indexed)?,
            partitioned_by,
            heirs,
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
            Kind::Constraint | Kind::Exclusion | Kind::PrimaryKey => {
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
        let exactly = &column.exactly;
        format!("run ALTER TABLE {table} ALTER COLUMN {name} TYPE {exactly}")
    }
}
