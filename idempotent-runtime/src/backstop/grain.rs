//! The grain of unique indexes, beside that of the key.

use std::marker::PhantomData;

use crate::store::{Catalog, Column, Expression, Flaw, Nulls, Part, Relation, Unique};

/// A key's columns, found in a table.
pub(super) struct Key<'r, DB> {
    relation: &'r Relation,
    columns: Vec<&'r Column>,
    database: PhantomData<DB>,
}

/// How a unique index relates to the key.
pub(super) enum Fit<'r> {
    Exact,
    /// On some columns of the key: it refuses rows that differ in these only.
    Coarser(Vec<&'r str>),
    /// The same, but of some rows, in which these may differ.
    Sliced(Vec<&'r str>),
    /// On the columns of the key, but different values of these are equal to it.
    Folding(Vec<&'r Column>),
    /// On an expression of them, which cannot be looked into.
    Opaque,
    /// On the columns of the key, of which these may be NULL.
    Nullable(Vec<&'r Column>),
    /// On the columns of the key, of some rows.
    Partial,
    /// On the columns of the key, but looked at too late, or not everywhere, or not to refuse.
    Flawed(Flaw),
    /// On these columns too.
    Finer(Vec<&'r str>),
    /// On others.
    Unrelated,
}

/// What an index compares.
#[derive(Default)]
struct Compared<'r> {
    of_key: Vec<&'r str>,
    others: Vec<&'r str>,
    expressions: Vec<&'r Expression>,
}

impl<'r, DB: Catalog> Key<'r, DB> {
    pub(super) const fn new(relation: &'r Relation, columns: Vec<&'r Column>) -> Self {
        Self {
            relation,
            columns,
            database: PhantomData,
        }
    }

    pub(super) fn columns(&self) -> &[&'r Column] {
        &self.columns
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    pub(super) fn fit(&self, unique: &'r Unique) -> Fit<'r> {
        let compared = self.compared(unique);
        let rest: Vec<_> = self
            .names()
            .filter(|name| !compared.of_key.contains(name))
            .collect();
        if !compared.others.is_empty() {
            return if rest.is_empty() {
                Fit::Finer(compared.others)
            } else {
                Fit::Unrelated
            };
        }
        let is_whole = rest.is_empty() && compared.expressions.is_empty();
        if unique.flaw == Some(Flaw::Unready) && !is_whole {
            return Fit::Unrelated;
        }
        let expressions = compared.expressions.iter();
        let inside: Vec<_> = expressions.flat_map(|one| self.sources(one)).collect();
        // A function of what is not in the key can be finer in its own way.
        if !inside.iter().all(|name| self.has(name)) {
            return Fit::Unrelated;
        }
        let filter = unique.filter.as_ref();
        let in_filter = filter
            .map(|filter| self.sources(filter))
            .unwrap_or_default();
        let is_seen = |name: &&str| inside.contains(name) || in_filter.contains(name);
        let (seen, unseen): (Vec<_>, Vec<_>) = rest.into_iter().partition(is_seen);
        if !unseen.is_empty() {
            Fit::Coarser(unseen)
        } else if !compared.expressions.is_empty() {
            Fit::Opaque
        } else if seen.is_empty() {
            self.fit_of_same_columns(unique)
        } else {
            self.fit_of_some_rows(unique, seen)
        }
    }

    /// A WHERE that holds for one value of a column makes a rule for that value.
    fn fit_of_some_rows(&self, unique: &Unique, in_filter: Vec<&'r str>) -> Fit<'r> {
        let is_pinned = |name: &str| {
            let mut columns = self.columns.iter();
            let is_exact = columns.any(|column| column.name == name && column.is_exact);
            let filter = unique.filter.as_ref();
            is_exact && filter.is_some_and(|filter| filter.pins::<DB>(name))
        };
        let varying: Vec<_> = in_filter
            .into_iter()
            .filter(|name| !is_pinned(name))
            .collect();
        if varying.is_empty() {
            Fit::Unrelated
        } else {
            Fit::Sliced(varying)
        }
    }

    fn fit_of_same_columns(&self, unique: &'r Unique) -> Fit<'r> {
        let columns = self.columns.iter().copied();
        let folded: Vec<_> = columns
            .filter(|column| unique.folds(&column.name))
            .collect();
        if !folded.is_empty() {
            return Fit::Folding(folded);
        }
        if unique.filter.is_some() {
            return Fit::Partial;
        }
        if let Some(flaw) = unique.flaw {
            return Fit::Flawed(flaw);
        }
        let columns = self.columns.iter().copied();
        let nullable: Vec<_> = columns.filter(|column| column.is_nullable).collect();
        match nullable[..] {
            [] => Fit::Exact,
            _ if unique.nulls == Nulls::Equal => Fit::Exact,
            [column] if self.has_one_for_null(column) => Fit::Exact,
            _ => Fit::Nullable(nullable),
        }
    }

    /// Whether another index, on the rest of the key, guards the rows in which a column is NULL.
    fn has_one_for_null(&self, column: &Column) -> bool {
        self.relation.uniques.iter().any(|unique| {
            let compared = self.compared(unique);
            let is_of_rest = self
                .names()
                .all(|name| (name == column.name) != compared.of_key.contains(&name));
            let filter = unique.filter.as_ref();
            is_of_rest
                && compared.others.is_empty()
                && compared.expressions.is_empty()
                && unique.flaw.is_none()
                && !self.names().any(|name| unique.folds(name))
                && filter.is_some_and(|filter| filter.is_null_test_of::<DB>(&column.name))
        })
    }

    fn names(&self) -> impl Iterator<Item = &'r str> {
        self.columns.iter().map(|column| &*column.name)
    }

    fn compared(&self, unique: &'r Unique) -> Compared<'r> {
        let mut compared = Compared::default();
        for part in &unique.parts {
            match part {
                Part::Column { name, .. } if self.has(name) => compared.of_key.push(name),
                Part::Column { name, .. } => match self.generated(name) {
                    Some(expression) => compared.expressions.push(expression),
                    None => compared.others.push(name),
                },
                Part::Expression(expression) => compared.expressions.push(expression),
            }
        }
        compared
    }

    /// What makes a column, if nobody else does.
    fn generated(&self, name: &str) -> Option<&'r Expression> {
        let mut columns = self.relation.columns.iter();
        let column = columns.find(|column| column.name == name)?;
        column.generated.as_ref()
    }

    /// The columns on which an expression depends in the end; those of the key are not looked into.
    fn sources(&self, expression: &'r Expression) -> Vec<&'r str> {
        let mut expressions = vec![expression];
        let mut found: Vec<&Column> = Vec::new();
        while let Some(expression) = expressions.pop() {
            for column in &self.relation.columns {
                let is_new = !found.iter().any(|found| found.name == column.name);
                if is_new && expression.mentions::<DB>(&column.name) {
                    found.push(column);
                    let generated = column.generated.as_ref();
                    expressions.extend(generated.filter(|_| !self.has(&column.name)));
                }
            }
        }
        let is_source = |column: &&Column| column.generated.is_none() || self.has(&column.name);
        let sources = found.into_iter().filter(is_source);
        sources.map(|column| &*column.name).collect()
    }
}
