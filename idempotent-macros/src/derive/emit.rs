//! The two implementations.

use std::collections::HashSet;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Generics, Ident};

use super::dependence::Dependence;
use super::input::{CountedFields, Field, Shape, Variant};
use crate::key::{self, Assertion, Presence};

/// The type that the traits are implemented for.
pub(super) struct Target<'a> {
    ident: &'a Ident,
    generics: &'a Generics,
    runtime: TokenStream,
}

#[derive(Clone, Copy, PartialEq)]
enum Trait {
    Text,
    Part,
}

impl Trait {
    fn path(self, runtime: &TokenStream) -> TokenStream {
        match self {
            Self::Text => quote!(#runtime::KeyText),
            Self::Part => quote!(#runtime::KeyPart),
        }
    }

    /// What an `Option` of such a type is.
    fn option_path(self, runtime: &TokenStream) -> TokenStream {
        match self {
            Self::Text => quote!(#runtime::__private::TextOption),
            Self::Part => quote!(#runtime::__private::PartOption),
        }
    }
}

impl<'a> Target<'a> {
    pub(super) fn new(ident: &'a Ident, generics: &'a Generics, runtime: TokenStream) -> Self {
        Self {
            ident,
            generics,
            runtime,
        }
    }

    pub(super) fn implement(&self, shape: &Shape<'_>) -> TokenStream {
        let runtime = &self.runtime;
        let writer = &Ident::new("writer", Span::mixed_site());
        let body = match shape {
            Shape::Struct(fields) => {
                let pattern = pattern(fields);
                let pushes = self.pushes(fields, writer);
                quote!(let Self #pattern = self; #pushes)
            }
            Shape::Enum(variants) => {
                let arms = variants.iter().map(|variant| self.arm(variant, writer));
                quote!(match *self { #(#arms)* })
            }
        };
        let text = self.implementation(
            Trait::Text,
            self.bounds(shape, Trait::Text),
            &quote! {
                fn write_key(&self, #writer: &mut #runtime::KeyWriter) {
                    #body
                }
            },
        );
        let part = self.implementation(
            Trait::Part,
            self.bounds(shape, Trait::Part),
            &TokenStream::new(),
        );
        quote!(#text #part)
    }

    /// Implementations that do nothing.
    pub(super) fn stub(&self) -> TokenStream {
        let runtime = &self.runtime;
        let body = quote!(fn write_key(&self, _: &mut #runtime::KeyWriter) {});
        let text = self.implementation(Trait::Text, Vec::new(), &body);
        let part = self.implementation(Trait::Part, Vec::new(), &TokenStream::new());
        quote!(#text #part)
    }

    fn implementation(
        &self,
        of: Trait,
        bounds: Vec<TokenStream>,
        body: &TokenStream,
    ) -> TokenStream {
        let (impl_generics, type_generics, where_clause) = self.generics.split_for_impl();
        let written = where_clause
            .into_iter()
            .flat_map(|clause| &clause.predicates);
        let predicates: Vec<_> = written
            .map(ToTokens::to_token_stream)
            .chain(bounds)
            .collect();
        let keyword = (!predicates.is_empty()).then(|| quote!(where));
        let (ident, path) = (self.ident, of.path(&self.runtime));
        quote! {
            // Deriving for what is deprecated is no use of it.
            #[allow(deprecated)]
            #[automatically_derived]
            impl #impl_generics #path for #ident #type_generics #keyword #(#predicates),* {
                #body
            }
        }
    }

    fn arm(&self, variant: &Variant<'_>, writer: &Ident) -> TokenStream {
        let runtime = &self.runtime;
        let (ident, name) = (variant.ident, &variant.name.text);
        let pattern = ref_pattern(&variant.fields);
        let pushes = self.pushes(&variant.fields, writer);
        let parameter = if variant.fields.counted.is_empty() {
            quote!(_)
        } else {
            writer.to_token_stream()
        };
        quote! {
            Self::#ident #pattern => {
                #runtime::KeyWriter::push_variant(#writer, #name, |#parameter| { #pushes });
            }
        }
    }

    fn pushes(&self, fields: &CountedFields<'_>, writer: &Ident) -> TokenStream {
        let push = |(index, field): (usize, &Field<'_>)| {
            let span = Span::mixed_site().located_at(field.span());
            let assertion = match Dependence::of(field.ty, self.ident, self.generics) {
                // The bounds of the implementation say what the type must be.
                Dependence::Parameters | Dependence::Recursion => Assertion::Stable,
                Dependence::None => field.arguments.assertion,
            };
            let function = Ident::new(key::writer(field.arguments.presence, assertion), span);
            let runtime = &self.runtime;
            let value = local(index, span);
            let path = quote_spanned!(span=> #runtime::__private::#function);
            quote!(#path(#writer, #value);)
        };
        let markers = fields.markers.iter().enumerate().map(|(index, field)| {
            let mut marker = marker(index);
            marker.set_span(marker.span().located_at(field.span()));
            quote!(let _: &::core::marker::PhantomData<_> = #marker;)
        });
        let pushes = fields.counted.iter().enumerate().map(push);
        markers.chain(pushes).collect()
    }

    /// What the fields' types must be for `of`. Types without parameters are checked where they
    /// are written, so that rustc blames the field.
    fn bounds(&self, shape: &Shape<'_>, of: Trait) -> Vec<TokenStream> {
        let mut seen = HashSet::new();
        let mut bounds = Vec::new();
        for field in shape.fields() {
            let of = match field.arguments.assertion {
                Assertion::None => of,
                Assertion::Stable => Trait::Text,
            };
            for bound in self.bounds_of(field, of) {
                if seen.insert(bound.to_string()) {
                    bounds.push(bound);
                }
            }
        }
        bounds
    }

    fn bounds_of(&self, field: &Field<'_>, of: Trait) -> Vec<TokenStream> {
        let ty = field.ty;
        match Dependence::of(field.ty, self.ident, self.generics) {
            Dependence::None => Vec::new(),
            // A bound on a type that contains this one would need itself.
            Dependence::Recursion => {
                let path = of.path(&self.runtime);
                let parameters = self
                    .generics
                    .type_params()
                    .map(|parameter| &parameter.ident);
                parameters.map(|ident| quote!(#ident: #path)).collect()
            }
            Dependence::Parameters => {
                let path = match field.arguments.presence {
                    Presence::Always => of.path(&self.runtime),
                    Presence::Nullable | Presence::Required => of.option_path(&self.runtime),
                };
                vec![quote!(#ty: #path)]
            }
        }
    }
}

fn pattern(fields: &CountedFields<'_>) -> TokenStream {
    bindings(fields, &TokenStream::new())
}

/// For a place behind a reference.
fn ref_pattern(fields: &CountedFields<'_>) -> TokenStream {
    bindings(fields, &quote!(ref))
}

/// Braces fit every kind of struct and variant.
fn bindings(fields: &CountedFields<'_>, mode: &TokenStream) -> TokenStream {
    let CountedFields {
        counted, markers, ..
    } = fields;
    let members = counted.iter().chain(markers).map(|field| &field.member);
    let locals = (0..counted.len()).map(|index| local(index, Span::mixed_site()));
    let locals = locals.chain((0..markers.len()).map(marker));
    let rest = (fields.partial && markers.is_empty()).then(|| quote!(..));
    quote!({ #(#members: #mode #locals,)* #rest })
}

fn local(index: usize, span: Span) -> Ident {
    format_ident!("field_{index}", span = span)
}

fn marker(index: usize) -> Ident {
    format_ident!("marker_{index}", span = Span::mixed_site())
}
