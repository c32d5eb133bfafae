//! Which parameter is the transaction.

use proc_macro2::{Ident, Span};
use syn::Type;

use crate::diagnostics;
use crate::handler::{Handler, Param, last_segment, ungrouped};

impl Handler {
    /// Finds the transaction: named by `tx = …`, or the one of that type, or
    /// the one of that name.
    pub(crate) fn transaction(&self, named: Option<&Ident>) -> syn::Result<Ident> {
        let (param, name) = match named {
            Some(named) => self.named_transaction(named)?,
            None => self.only_transaction()?,
        };
        check(&param.ty, name)?;
        Ok(name.clone())
    }

    fn named_transaction(&self, named: &Ident) -> syn::Result<(&Param, &Ident)> {
        self.binding(named)
            .ok_or_else(|| diagnostics::unknown_parameter(named, &named.to_string(), self))
    }

    fn only_transaction(&self) -> syn::Result<(&Param, &Ident)> {
        let mut typed = self.params.iter().filter(|param| is_transaction(&param.ty));
        match (typed.next(), typed.next()) {
            (Some(_), Some(second)) => Err(diagnostics::two_transactions(second.span)),
            (Some(param), None) => match param.names.first() {
                Some(name) => Ok((param, name)),
                None => Err(diagnostics::unnamed_transaction(param.span)),
            },
            (None, _) => match self.binding(&Ident::new("tx", Span::call_site())) {
                Some(binding) => Ok(binding),
                None => Err(self.no_transaction()),
            },
        }
    }

    /// A pool or a connection was perhaps meant to be one.
    fn no_transaction(&self) -> syn::Error {
        let mistaken = self.params.iter().find_map(|param| {
            let name = param.names.first()?;
            check(&param.ty, name).err()
        });
        mistaken.unwrap_or_else(|| diagnostics::no_transaction(&self.sig))
    }
}

/// `&mut …::Transaction<…>`.
fn is_transaction(ty: &Type) -> bool {
    matches!(ungrouped(ty), Type::Reference(reference)
        if reference.mutability.is_some() && last_segment(&reference.elem).is_some_and(names_transaction))
}

/// sqlx's own name, or one of its aliases.
fn names_transaction(name: &Ident) -> bool {
    [
        "Transaction",
        "PgTransaction",
        "MySqlTransaction",
        "SqliteTransaction",
    ]
    .iter()
    .any(|known| name == known)
}

/// Refuses what cannot be the transaction, if its name tells.
fn check(ty: &Type, name: &Ident) -> syn::Result<()> {
    let (referent, is_mut) = match ungrouped(ty) {
        Type::Reference(reference) => (&*reference.elem, reference.mutability.is_some()),
        ty => (ty, false),
    };
    let Some(segment) = last_segment(referent) else {
        return Ok(());
    };
    match &*segment.to_string() {
        "Pool" | "PgPool" | "MySqlPool" | "SqlitePool" => {
            Err(diagnostics::not_a_transaction(ty, "pool", name))
        }
        "PoolConnection" | "PgConnection" | "MySqlConnection" | "SqliteConnection" => {
            Err(diagnostics::not_a_transaction(ty, "connection", name))
        }
        _ if names_transaction(segment) && !is_mut => Err(diagnostics::transaction_not_mut(ty)),
        _ => Ok(()),
    }
}
