//! The grain of unique indexes, beside that of the key.

use std::marker::PhantomData;

use super::{TableName, ticked};
use crate::store::{Catalog, Column, Flaw, Kind, Nulls, Part, Relation, Unique};

/// A key's columns, found in a table.
pub(super) struct Backstop<'r, DB> {
    table: &'r TableName,
    relation: &'r Relation,
    key: Vec<&'r Column>,
    database: PhantomData<DB>,
}

/// How a unique index relates to the key.
enum Fit<'r> {
    Exact,
    /// On some columns of the key: it refuses rows that differ in these only.
    Coarser(Vec<&'r str>),
    /// On the columns of the key, but different values of these are equal to it.
    Folding(Vec<&'r Column>),
    /// On an expression of them, which cannot be looked into.
    Opaque,
    /// On the columns of the key, of which these may be NULL.
    Nullable(Vec<&'r Column>),
    /// On the columns of the key, but looked at too late, or not everywhere.
    Flawed(Flaw),
    /// On these columns too.
    Finer(Vec<&'r str>),
    /// On others.
    Unrelated,
}

/// What is wrong, and what to do.
struct Fault {
    fact: String,
    ways_out: Vec<String>,
    /// After that nothing has to be added.
    is_settled: bool,
}

impl<'r, DB: Catalog> Backstop<'r, DB> {
    pub(super) fn new(
        table: &'r TableName,
        relation: &'r Relation,
        columns: &[String],
    ) -> Result<Self, String> {
        let mut key: Vec<&Column> = Vec::with_capacity(columns.len());
        for name in columns {
            let Some(column) = find::<DB>(relation, name) else {
                let names: Vec<_> = relation.columns.iter().map(|column| &column.name).collect();
                return Err(format!(
                    "table `{table}` has no column `{name}`: it has {}",
                    ticked(&names, ", ")
                ));
            };
            if key.iter().any(|found| found.name == column.name) {
                return Err(format!(
                    "column `{name}` is named twice: name each column of the key once"
                ));
            }
            key.push(column);
        }
        if key.is_empty() {
            return Err("no column is named: name those of the key".to_owned());
        }
        Ok(Self {
            table,
            relation,
            key,
            database: PhantomData,
        })
    }

    pub(super) fn verify(&self) -> Result<(), String> {
        let fits: Vec<_> = self
            .relation
            .uniques
            .iter()
            .map(|unique| (unique, self.fit(unique)))
            .collect();
        let is_exact = fits.iter().any(|(_, fit)| matches!(fit, Fit::Exact));
        let mut faults: Vec<_> = fits
            .iter()
            .filter_map(|(unique, fit)| self.coarser(unique, fit, is_exact))
            .collect();
        if !is_exact {
            let mut finer: Vec<_> = fits
                .iter()
                .filter_map(|(unique, fit)| self.finer(unique, fit))
                .collect();
            finer.sort_by_key(|fault| !fault.is_settled);
            match finer.into_iter().next() {
                Some(fault) => faults.push(fault),
                None if faults.is_empty() => faults.push(self.missing()),
                None => {}
            }
        }
        if faults.is_empty() {
            return Ok(());
        }
        let is_settled = is_exact || faults.iter().any(|fault| fault.is_settled);
        Err(self.told(&faults, is_settled))
    }

    fn told(&self, faults: &[Fault], is_settled: bool) -> String {
        let facts: Vec<_> = faults.iter().map(|fault| &*fault.fact).collect();
        let mut ways_out: Vec<_> = faults
            .iter()
            .flat_map(|fault| fault.ways_out.iter().cloned())
            .collect();
        if !is_settled {
            ways_out.push(DB::add_unique(self.table, &self.columns_to_add()));
        }
        format!("{}; {}", facts.join("; "), ways_out.join(", then "))
    }

    fn columns_to_add(&self) -> Vec<String> {
        let folds = |column: &Column| {
            let mut uniques = self.relation.uniques.iter();
            uniques.any(|unique| {
                let mut parts = unique.parts.iter();
                parts.any(|part| part.column == column.name && part.folding.is_some())
            })
        };
        let column = |column: &&Column| {
            let exactly = if folds(column) { DB::EXACTLY } else { "" };
            TableName::bare(&column.name).quoted(DB::QUOTE) + exactly
        };
        self.key.iter().map(column).collect()
    }

    fn fit(&self, unique: &'r Unique) -> Fit<'r> {
        let is_part = |name: &str| unique.parts.iter().any(|part| part.column == name);
        let other = |part: &'r Part| (!self.is_of_key(&part.column)).then_some(&*part.column);
        let others: Vec<_> = unique.parts.iter().filter_map(other).collect();
        let rest: Vec<_> = self
            .key
            .iter()
            .filter(|column| !is_part(&column.name))
            .collect();
        if !others.is_empty() {
            return if rest.is_empty() {
                Fit::Finer(others)
            } else {
                Fit::Unrelated
            };
        }
        if unique.flaw == Some(Flaw::Unready) && !rest.is_empty() {
            return Fit::Unrelated;
        }
        let has_expression = unique.flaw == Some(Flaw::Expression);
        // A function of what is not in the key can be finer in its own way.
        if has_expression && !unique.mentioned.iter().all(|name| self.is_of_key(name)) {
            return Fit::Unrelated;
        }
        // A WHERE that mentions a column may hold for one value of it only.
        let unseen: Vec<_> = rest
            .iter()
            .filter(|column| !unique.mentioned.contains(&column.name))
            .map(|column| &*column.name)
            .collect();
        if !unseen.is_empty() {
            return Fit::Coarser(unseen);
        }
        if has_expression {
            return Fit::Opaque;
        }
        if !rest.is_empty() {
            return Fit::Unrelated;
        }
        self.fit_of_same_columns(unique)
    }

    fn fit_of_same_columns(&self, unique: &'r Unique) -> Fit<'r> {
        if unique.flaw == Some(Flaw::Partial) {
            return Fit::Flawed(Flaw::Partial);
        }
        let folds = |column: &&&'r Column| {
            let mut parts = unique.parts.iter();
            parts.any(|part| part.column == column.name && part.folding.is_some())
        };
        let folded: Vec<_> = self.key.iter().filter(folds).copied().collect();
        if !folded.is_empty() {
            return Fit::Folding(folded);
        }
        if let Some(flaw) = unique.flaw {
            return Fit::Flawed(flaw);
        }
        let nullable = self.key.iter().filter(|column| column.is_nullable);
        let nullable: Vec<_> = nullable.copied().collect();
        if unique.nulls == Nulls::Distinct && !nullable.is_empty() {
            return Fit::Nullable(nullable);
        }
        Fit::Exact
    }

    fn is_of_key(&self, name: &str) -> bool {
        self.key.iter().any(|column| column.name == name)
    }

    /// What an index refuses that it should not.
    fn coarser(&self, unique: &Unique, fit: &Fit<'_>, is_exact: bool) -> Option<Fault> {
        let (subject, key) = (self.subject(unique), self.key_text());
        let remove = vec![DB::drop_unique(self.table, unique)];
        match fit {
            Fit::Coarser(unseen) => Some(Fault {
                fact: format!(
                    "{subject} is coarser than the key {key}: it would refuse a row that differs in {} only",
                    ticked(unseen, " or ")
                ),
                ways_out: remove,
                is_settled: false,
            }),
            Fit::Folding(folded) => {
                let why: Vec<_> = unique
                    .parts
                    .iter()
                    .filter_map(|part| {
                        Some(format!("`{}`, by {}", part.column, part.folding.as_ref()?))
                    })
                    .collect();
                let is_settled = !is_exact && folded.iter().all(|column| column.folding.is_some());
                let sharpen = |column: &&Column| DB::compare_exactly(self.table, column);
                Some(Fault {
                    fact: format!(
                        "{subject} is coarser than the key {key}: different values are equal to it in {}",
                        why.join(", and in ")
                    ),
                    ways_out: if is_settled {
                        folded.iter().map(sharpen).collect()
                    } else {
                        remove
                    },
                    is_settled,
                })
            }
            Fit::Opaque => Some(Fault {
                fact: format!(
                    "{subject} may be coarser than the key {key}: it is on an expression, for which different keys can be equal"
                ),
                ways_out: remove,
                is_settled: false,
            }),
            _ => None,
        }
    }

    /// Why an index would let a duplicate through.
    fn finer(&self, unique: &Unique, fit: &Fit<'_>) -> Option<Fault> {
        let subject = self.subject(unique);
        let (fact, ways_out, is_settled) = match fit {
            Fit::Nullable(columns) => {
                let names: Vec<_> = columns.iter().map(|column| &column.name).collect();
                let fact = format!(
                    "{subject} takes no NULL for another, and {} may be NULL: a duplicate would get through",
                    ticked(&names, " and ")
                );
                let require = |column: &&Column| DB::refuse_null(self.table, column);
                (fact, columns.iter().map(require).collect(), true)
            }
            Fit::Flawed(Flaw::Deferred) => (
                format!(
                    "{subject} is INITIALLY DEFERRED: it refuses a duplicate at COMMIT only, after the handler has done its work"
                ),
                vec![DB::drop_unique(self.table, unique)],
                false,
            ),
            Fit::Flawed(Flaw::Invalid | Flaw::Unready) => (
                format!(
                    "{subject} is not valid: its making was not finished, and duplicates may be there"
                ),
                vec![DB::drop_unique(self.table, unique)],
                false,
            ),
            Fit::Flawed(_) => (
                format!(
                    "{subject} is partial: a duplicate among the rows that its WHERE leaves out would get through"
                ),
                Vec::new(),
                false,
            ),
            Fit::Finer(others) => (
                format!(
                    "{subject} is finer than the key {}: a duplicate with another {} would get through",
                    self.key_text(),
                    ticked(others, " or ")
                ),
                Vec::new(),
                false,
            ),
            _ => return None,
        };
        Some(Fault {
            fact,
            ways_out,
            is_settled,
        })
    }

    fn missing(&self) -> Fault {
        Fault {
            fact: format!(
                "table `{}` has no unique constraint on the key {}: a duplicate would get through",
                self.table,
                self.key_text()
            ),
            ways_out: Vec::new(),
            is_settled: false,
        }
    }

    fn subject(&self, unique: &Unique) -> String {
        let (name, table) = (&unique.name, self.table);
        match unique.kind {
            Kind::Index => format!("unique index `{name}` of table `{table}`"),
            Kind::Constraint => format!("unique constraint `{name}` of table `{table}`"),
            Kind::PrimaryKey => format!("the primary key of table `{table}`"),
        }
    }

    fn key_text(&self) -> String {
        let names: Vec<_> = self.key.iter().map(|column| &*column.name).collect();
        format!("({})", names.join(", "))
    }
}

fn find<'r, DB: Catalog>(relation: &'r Relation, name: &str) -> Option<&'r Column> {
    let is_it = |column: &&Column| {
        if DB::FOLDS_NAMES {
            column.name.to_lowercase() == name.to_lowercase()
        } else {
            column.name == name
        }
    };
    relation.columns.iter().find(is_it)
}
