//! How a field's type depends on the type that it is in.

use syn::visit::{self, Visit};
use syn::{Generics, Ident, Path, Type};

/// Whether a field's type depends on the parameters of the type.
pub(super) enum Dependence {
    None,
    Parameters,
    /// It contains the type itself.
    Recursion,
}

impl Dependence {
    pub(super) fn of(ty: &Type, target: &Ident, generics: &Generics) -> Self {
        let parameters: Vec<_> = generics.type_params().map(|it| &it.ident).collect();
        if parameters.is_empty() {
            return Self::None;
        }
        let mut names = Names::default();
        names.visit_type(ty);
        if names
            .whole
            .iter()
            .any(|name| name == "Self" || name == target)
        {
            Self::Recursion
        } else if names.first.iter().any(|name| parameters.contains(&name)) {
            Self::Parameters
        } else {
            Self::None
        }
    }
}

/// The names in a type.
#[derive(Default)]
struct Names {
    /// Paths of one segment: `std::time::Duration` is no `Duration` of this module.
    whole: Vec<Ident>,
    /// What paths begin with, as `T::Id` with `T`.
    first: Vec<Ident>,
}

impl Visit<'_> for Names {
    fn visit_path(&mut self, path: &Path) {
        if let (None, Some(first)) = (path.leading_colon, path.segments.first()) {
            self.first.push(first.ident.clone());
            if path.segments.len() == 1 {
                self.whole.push(first.ident.clone());
            }
        }
        visit::visit_path(self, path);
    }
}
