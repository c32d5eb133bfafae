//! What is said of a table's unique indexes.

use super::grain::{Fit, Key};
use super::{TableName, ticked};
use crate::store::{Catalog, Column, Flaw, Kind, Part, Relation, Unique, same};

/// A table, beside the key that it is to guard.
pub(super) struct Backstop<'r, DB> {
    table: &'r TableName,
    relation: &'r Relation,
    key: Key<'r, DB>,
}

/// What is wrong, and what to do.
struct Fault {
    fact: String,
    ways_out: Vec<String>,
    /// After that nothing has to be added.
    is_settled: bool,
}

impl Fault {
    /// After this there is one index less, or nothing has changed.
    fn unsettled(fact: String, ways_out: Vec<String>) -> Self {
        Self {
            fact,
            ways_out,
            is_settled: false,
        }
    }
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
            key: Key::new(relation, key),
        })
    }

    pub(super) fn verify(&self) -> Result<(), String> {
        let fits: Vec<_> = self
            .relation
            .uniques
            .iter()
            .map(|unique| (unique, self.key.fit(unique)))
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
        faults.extend(self.relation.heirs.iter().map(|heir| self.uncovered(heir)));
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
            ways_out.push(self.addition());
        }
        format!("{}; {}", facts.join("; "), ways_out.join(", then "))
    }

    /// How to add what is missing, if that can be.
    fn addition(&self) -> String {
        let by = self.relation.partitioned_by.iter();
        let outside: Vec<_> = by.filter(|name| !self.key.has(name)).collect();
        if outside.is_empty() {
            return DB::add_unique(self.table, &self.columns_to_add());
        }
        format!(
            "no unique constraint can be on the key while `{}` is partitioned by {}: partition it by columns of the key",
            self.table,
            ticked(&outside, " and ")
        )
    }

    fn columns_to_add(&self) -> Vec<String> {
        // What a column folds, no index of it tells apart.
        let folds = |column: &Column| {
            let mut uniques = self.relation.uniques.iter();
            column.folding.is_none() && uniques.any(|unique| unique.folds(&column.name))
        };
        let column = |column: &&Column| {
            let exactly = if folds(column) { DB::EXACTLY } else { "" };
            TableName::bare(&column.name).quoted(DB::QUOTE) + exactly
        };
        self.key.columns().iter().map(column).collect()
    }

    /// What an index does that it should not.
    fn coarser(&self, unique: &Unique, fit: &Fit<'_>, is_exact: bool) -> Option<Fault> {
        let (subject, key) = (self.subject(unique), self.key_text());
        let remove = vec![DB::drop_unique(self.table, unique)];
        let fact = match fit {
            Fit::Coarser(unseen) => format!(
                "{subject} is coarser than the key {key}: it would refuse a row that differs in {} only",
                ticked(unseen, " or ")
            ),
            Fit::Sliced(varying) => format!(
                "{subject} may be coarser than the key {key}: its WHERE can hold for different values of {}",
                ticked(varying, " and ")
            ),
            Fit::Opaque if unique.kind == Kind::Exclusion => format!(
                "{subject} may be coarser than the key {key}: it has other operators than `=`, for which different \
                 keys can be equal"
            ),
            Fit::Opaque => format!(
                "{subject} may be coarser than the key {key}: it is on an expression, for which different keys can be \
                 equal"
            ),
            Fit::Flawed(Flaw::Ignores) => format!(
                "{subject} says ON CONFLICT IGNORE: a duplicate is passed over without an error"
            ),
            Fit::Flawed(Flaw::Replaces) => format!(
                "{subject} says ON CONFLICT REPLACE: a duplicate takes the place of the first"
            ),
            Fit::Folding(folded) => return Some(self.folding(unique, folded, is_exact)),
            _ => return None,
        };
        Some(Fault::unsettled(fact, remove))
    }

    fn folding(&self, unique: &Unique, folded: &[&Column], is_exact: bool) -> Fault {
        let why: Vec<_> = unique.parts.iter().filter_map(why_folded).collect();
        let fact = format!(
            "{} is coarser than the key {}: different values are equal to it in {}",
            self.subject(unique),
            self.key_text(),
            why.join(", and in ")
        );
        let is_settled = !is_exact && folded.iter().all(|column| column.folding.is_some());
        let sharpen = |column: &&Column| DB::compare_exactly(self.table, column);
        let ways_out = if is_settled {
            folded.iter().map(sharpen).collect()
        } else {
            vec![DB::drop_unique(self.table, unique)]
        };
        Fault {
            fact,
            ways_out,
            is_settled,
        }
    }

    /// Why an index would let a duplicate through.
    fn finer(&self, unique: &Unique, fit: &Fit<'_>) -> Option<Fault> {
        let subject = self.subject(unique);
        let remove = || vec![DB::drop_unique(self.table, unique)];
        let (fact, ways_out) = match fit {
            Fit::Nullable(columns) => return Some(self.nullable(unique, columns)),
            Fit::Flawed(Flaw::Deferred) => (
                format!(
                    "{subject} is INITIALLY DEFERRED: it refuses a duplicate at COMMIT only, after the handler has done its work"
                ),
                remove(),
            ),
            Fit::Flawed(Flaw::Invalid | Flaw::Unready) => (
                format!(
                    "{subject} is not valid: its making was not finished, and duplicates may be there"
                ),
                remove(),
            ),
            Fit::Partial => (
                format!(
                    "{subject} is partial: a duplicate among the rows that its WHERE leaves out would get through"
                ),
                Vec::new(),
            ),
            Fit::Finer(others) => (
                format!(
                    "{subject} is finer than the key {}: a duplicate with another {} would get through",
                    self.key_text(),
                    ticked(others, " or ")
                ),
                Vec::new(),
            ),
            _ => return None,
        };
        Some(Fault::unsettled(fact, ways_out))
    }

    fn nullable(&self, unique: &Unique, columns: &[&Column]) -> Fault {
        let names: Vec<_> = columns.iter().map(|column| &column.name).collect();
        let fact = format!(
            "{} takes no NULL for another, and {} may be NULL: a duplicate would get through",
            self.subject(unique),
            ticked(&names, " and ")
        );
        let require = |column: &&Column| DB::refuse_null(self.table, column);
        Fault {
            fact,
            ways_out: columns.iter().map(require).collect(),
            is_settled: true,
        }
    }

    fn missing(&self) -> Fault {
        let fact = format!(
            "table `{}` has no unique constraint on the key {}: a duplicate would get through",
            self.table,
            self.key_text()
        );
        Fault::unsettled(fact, Vec::new())
    }

    fn uncovered(&self, heir: &str) -> Fault {
        let table = self.table;
        let fact = format!(
            "`{heir}` inherits from table `{table}`: no unique index of `{table}` covers its rows, and a duplicate \
             there would get through"
        );
        let parent = table.quoted(DB::QUOTE);
        let way_out = format!("run ALTER TABLE {heir} NO INHERIT {parent}");
        Fault::unsettled(fact, vec![way_out])
    }

    fn subject(&self, unique: &Unique) -> String {
        let (name, table) = (&unique.name, self.table);
        match unique.kind {
            Kind::Index => format!("unique index `{name}` of table `{table}`"),
            Kind::Constraint => format!("unique constraint `{name}` of table `{table}`"),
            Kind::Exclusion => format!("exclusion constraint `{name}` of table `{table}`"),
            Kind::PrimaryKey => format!("the primary key of table `{table}`"),
        }
    }

    fn key_text(&self) -> String {
        let columns = self.key.columns().iter();
        let names: Vec<_> = columns.map(|column| &*column.name).collect();
        format!("({})", names.join(", "))
    }
}

fn why_folded(part: &Part) -> Option<String> {
    match part {
        Part::Column {
            name,
            folding: Some(folding),
        } => Some(format!("`{name}`, by {folding}")),
        _ => None,
    }
}

fn find<'r, DB: Catalog>(relation: &'r Relation, name: &str) -> Option<&'r Column> {
    let mut columns = relation.columns.iter();
    columns.find(|column| same::<DB>(&column.name, name))
}
