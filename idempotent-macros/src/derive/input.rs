//! The fields that count, each bound to how it is written.

use proc_macro2::Span;
use syn::{Attribute, Data, DeriveInput, Fields, Ident, Member, Type, spanned::Spanned};

use super::{
    arguments::{FieldArguments, VariantName},
    diagnostics,
};
use crate::handler::{last_segment, ungrouped};
use crate::key::{Assertion, Presence};
use crate::mistakes::Errors;

pub(super) enum Shape<'a> {
    Struct(CountedFields<'a>),
    Enum(Vec<Variant<'a>>),
}

impl<'a> Shape<'a> {
    /// `None` where an error says why.
    pub(super) fn parse(
        input: &'a DeriveInput,
        transparent: Option<Span>,
        errors: &mut Errors,
    ) -> Option<Self> {
        let ident = &input.ident;
        match &input.data {
            Data::Union(data) => {
                errors.push(diagnostics::union(data.union_token.span()));
                None
            }
            Data::Struct(data) => {
                let fields = CountedFields::parse(&data.fields, errors);
                let count = fields.counted.len();
                match transparent {
                    Some(span) if count > 1 => {
                        let name = ident.to_string();
                        errors.push(diagnostics::transparent_fields(span, &name, count));
                    }
                    _ if count == 0 => {
                        errors.push(diagnostics::no_fields(ident.span(), &ident.to_string()));
                    }
                    _ => return Some(Self::Struct(fields)),
                }
                None
            }
            Data::Enum(data) => {
                if let Some(span) = transparent {
                    errors.push(diagnostics::transparent_enum(span));
                }
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
        self.lists().flat_map(|fields| &fields.counted)
    }

    /// The fields of the struct, or of each variant.
    pub(super) fn lists(&self) -> impl Iterator<Item = &CountedFields<'a>> {
        let (fields, variants) = match self {
            Self::Struct(fields) => (Some(fields), None),
            Self::Enum(variants) => (None, Some(variants)),
        };
        let of_variants = variants
            .into_iter()
            .flatten()
            .map(|variant| &variant.fields);
        fields.into_iter().chain(of_variants)
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
    /// What is left out for its type, `PhantomData`, which is to be std's.
    pub(super) markers: Vec<Field<'a>>,
    /// Others do not count.
    pub(super) partial: bool,
    /// There is a bare `#[key]`.
    pub(super) marked: bool,
}

impl<'a> CountedFields<'a> {
    fn parse(fields: &'a Fields, errors: &mut Errors) -> Self {
        let all: Vec<_> = fields
            .members()
            .zip(fields)
            .map(|(member, field)| Field {
                member,
                ty: &field.ty,
                attributes: &field.attrs,
                arguments: FieldArguments::parse(&field.attrs, errors),
            })
            .collect();
        let marked = all.iter().any(|field| field.arguments.marked);
        let (counted, others): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|field| field.counts() || !marked && !field.seems_a_marker());
        let markers = others.into_iter().filter(|_| !marked).collect();
        Self {
            partial: counted.len() < fields.len(),
            counted,
            markers,
            marked,
        }
    }
}

pub(super) struct Field<'a> {
    pub(super) member: Member,
    pub(super) ty: &'a Type,
    pub(super) attributes: &'a [Attribute],
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

    /// `PhantomData` holds nothing that could count.
    fn seems_a_marker(&self) -> bool {
        last_segment(self.ty).is_some_and(|name| name == "PhantomData")
    }

    /// Its name, if it has one.
    pub(super) fn name(&self) -> Option<&Ident> {
        match &self.member {
            Member::Named(name) => Some(name),
            Member::Unnamed(_) => None,
        }
    }

    /// The token to blame for the type: rustc cannot join spans, and a path begins with a crate.
    pub(super) fn span(&self) -> Span {
        match ungrouped(self.ty) {
            Type::Path(ty) => ty
                .path
                .segments
                .last()
                .map_or_else(|| ty.span(), |last| last.ident.span()),
            ty => ty.span(),
        }
    }
}
