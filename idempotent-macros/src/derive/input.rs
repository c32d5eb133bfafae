//! The fields that count, each bound to how it is written.

use proc_macro2::Span;
use syn::{Data, Fields, Ident, Member, Type, spanned::Spanned};

use super::{
    arguments::{FieldArguments, VariantName},
    diagnostics,
};
use crate::key::{Assertion, Presence};
use crate::mistakes::Errors;

pub(super) enum Shape<'a> {
    Struct(CountedFields<'a>),
    Enum(Vec<Variant<'a>>),
}

impl<'a> Shape<'a> {
    /// `None` where an error says why.
    pub(super) fn parse(ident: &Ident, data: &'a Data, errors: &mut Errors) -> Option<Self> {
        match data {
            Data::Union(data) => {
                errors.push(diagnostics::union(data.union_token.span()));
                None
            }
            Data::Struct(data) if data.fields.is_empty() => {
                errors.push(diagnostics::no_fields(ident.span(), &ident.to_string()));
                None
            }
            Data::Struct(data) => Some(Self::Struct(CountedFields::parse(&data.fields, errors))),
            Data::Enum(data) => {
                let variants = data.variants.iter();
                let variants: Vec<_> = variants
                    .map(|variant| Variant::parse(variant, errors))
                    .collect();
                report_same_texts(&variants, errors);
                Some(Self::Enum(variants))
            }
        }
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = &Field<'a>> {
        let (fields, variants) = match self {
            Self::Struct(fields) => (Some(fields), None),
            Self::Enum(variants) => (None, Some(variants)),
        };
        let of_variants = variants
            .into_iter()
            .flatten()
            .map(|variant| &variant.fields);
        fields
            .into_iter()
            .chain(of_variants)
            .flat_map(|fields| &fields.counted)
    }
}

pub(super) struct Variant<'a> {
    pub(super) ident: &'a Ident,
    pub(super) name: VariantName,
    pub(super) fields: CountedFields<'a>,
}

impl<'a> Variant<'a> {
    fn parse(variant: &'a syn::Variant, errors: &mut Errors) -> Self {
        Self {
            ident: &variant.ident,
            name: VariantName::parse(&variant.ident, &variant.attrs, errors),
            fields: CountedFields::parse(&variant.fields, errors),
        }
    }
}

fn report_same_texts(variants: &[Variant<'_>], errors: &mut Errors) {
    for (index, variant) in variants.iter().enumerate() {
        let text = &variant.name.text;
        if variants
            .iter()
            .take(index)
            .any(|earlier| earlier.name.text == *text)
        {
            errors.push(diagnostics::same_text(variant.name.span, text));
        }
    }
}

/// The fields marked by a bare `#[key]`, or else all.
pub(super) struct CountedFields<'a> {
    pub(super) counted: Vec<Field<'a>>,
    /// Others do not count.
    pub(super) partial: bool,
}

impl<'a> CountedFields<'a> {
    fn parse(fields: &'a Fields, errors: &mut Errors) -> Self {
        let all: Vec<_> = fields
            .members()
            .zip(fields)
            .map(|(member, field)| Field {
                member,
                ty: &field.ty,
                arguments: FieldArguments::parse(&field.attrs, errors),
            })
            .collect();
        if all.iter().any(|field| field.arguments.marked) {
            let (counted, others): (Vec<_>, Vec<_>) = all.into_iter().partition(Field::counts);
            Self {
                counted,
                partial: !others.is_empty(),
            }
        } else {
            Self {
                counted: all,
                partial: false,
            }
        }
    }
}

pub(super) struct Field<'a> {
    pub(super) member: Member,
    pub(super) ty: &'a Type,
    pub(super) arguments: FieldArguments,
}

impl Field<'_> {
    /// Whether it counts beside a marked field: an argument is a mark too.
    fn counts(&self) -> bool {
        let FieldArguments {
            marked,
            assertion,
            presence,
        } = self.arguments;
        marked || assertion != Assertion::None || presence != Presence::Always
    }

    /// The token to blame for the type: rustc cannot join spans, and a path begins with a crate.
    pub(super) fn span(&self) -> Span {
        match self.ty {
            Type::Path(ty) => ty
                .path
                .segments
                .last()
                .map_or_else(|| ty.span(), |last| last.ident.span()),
            ty => ty.span(),
        }
    }
}
