//! What `#[key]` says on a type, a variant or a field. Syntax only.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Ident, LitStr, Meta, Path, Token,
    ext::IdentExt,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
    spanned::Spanned,
};

use super::diagnostics;
use super::keyword::{Keyword, Place};
use crate::key::{Assertion, Presence};
use crate::mistakes::Errors;

pub(super) struct TypeArguments {
    /// The path of the runtime.
    pub(super) runtime: TokenStream,
    /// Where it says that the text is that of the one field.
    pub(super) transparent: Option<Span>,
}

impl TypeArguments {
    pub(super) fn parse(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut parsed = Self {
            runtime: quote!(::idempotent_runtime),
            transparent: None,
        };
        for argument in Arguments::read(attributes, Place::Type, errors).list {
            if argument.keyword == Keyword::Transparent {
                argument.refuse_value(errors);
                parsed.transparent = Some(argument.span);
                continue;
            }
            match argument.value {
                Some(Value::Path(path)) => parsed.runtime = path.into_token_stream(),
                _ => errors.push(diagnostics::path_expected(argument.value_span())),
            }
        }
        parsed
    }
}

/// The text of a variant, and where it is written.
pub(super) struct VariantName {
    pub(super) text: String,
    pub(super) span: Span,
}

impl VariantName {
    pub(super) fn parse(ident: &Ident, attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut name = Self {
            text: ident.unraw().to_string(),
            span: ident.span(),
        };
        for argument in Arguments::read(attributes, Place::Variant, errors).list {
            match &argument.value {
                Some(Value::Text(text)) if text.value().is_empty() => {
                    errors.push(diagnostics::empty_name(text.span()));
                }
                Some(Value::Text(text)) => {
                    name = Self {
                        text: text.value(),
                        span: text.span(),
                    }
                }
                _ => errors.push(diagnostics::string_expected(argument.value_span())),
            }
        }
        name
    }
}

pub(super) struct FieldArguments {
    /// There is a bare `#[key]`.
    pub(super) marked: bool,
    pub(super) assertion: Assertion,
    pub(super) presence: Presence,
}

impl FieldArguments {
    pub(super) fn parse(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let arguments = Arguments::read(attributes, Place::Field, errors);
        let mut field = Self {
            marked: arguments.marked,
            assertion: Assertion::None,
            presence: Presence::Always,
        };
        for argument in &arguments.list {
            argument.refuse_value(errors);
            let presence = match argument.keyword {
                Keyword::Nullable => Presence::Nullable,
                Keyword::Required => Presence::Required,
                _ => {
                    field.assertion = Assertion::Stable;
                    continue;
                }
            };
            if field.presence != Presence::Always {
                errors.push(diagnostics::nullable_and_required(argument.span));
            }
            field.presence = presence;
        }
        field
    }
}

/// The arguments of all `#[key]` attributes at one place, each known there and given once.
struct Arguments {
    marked: bool,
    list: Vec<Argument>,
}

impl Arguments {
    fn read(attributes: &[Attribute], place: Place, errors: &mut Errors) -> Self {
        let mut read = Self {
            marked: false,
            list: Vec::new(),
        };
        for attribute in attributes
            .iter()
            .filter(|attribute| attribute.path().is_ident("key"))
        {
            match &attribute.meta {
                Meta::Path(path) if place == Place::Field => {
                    if read.marked {
                        errors.push(diagnostics::repeated_argument(path.span(), "#[key]"));
                    }
                    read.marked = true;
                }
                Meta::Path(path) => {
                    errors.push(diagnostics::marker_outside_fields(path.span(), place));
                }
                Meta::NameValue(value) => {
                    errors.push(diagnostics::not_a_list(value.eq_token.span()));
                }
                Meta::List(list) if list.tokens.is_empty() => {
                    errors.push(diagnostics::empty_list(list.path.span()));
                }
                Meta::List(list) => match list.parse_args_with(Punctuated::parse_terminated) {
                    Ok(written) => read.extend(written, place, errors),
                    Err(error) => errors.push(diagnostics::malformed(error.span())),
                },
            }
        }
        read
    }

    fn extend(
        &mut self,
        written: Punctuated<Written, Token![,]>,
        place: Place,
        errors: &mut Errors,
    ) {
        for Written { name, value } in written {
            let (span, text) = (name.span(), name.unraw().to_string());
            match Keyword::find(&text) {
                None => errors.push(diagnostics::unknown_argument(span, &text, place)),
                Some(keyword) if keyword.place() != place => {
                    let right = keyword.place();
                    errors.push(diagnostics::misplaced_argument(span, &text, place, right));
                }
                Some(keyword) if self.list.iter().any(|argument| argument.keyword == keyword) => {
                    errors.push(diagnostics::repeated_argument(span, &text));
                }
                Some(keyword) => self.list.push(Argument {
                    keyword,
                    span,
                    value,
                }),
            }
        }
    }
}

struct Argument {
    keyword: Keyword,
    /// Of the name.
    span: Span,
    value: Option<Value>,
}

impl Argument {
    fn refuse_value(&self, errors: &mut Errors) {
        if self.value.is_some() {
            let span = self.value_span();
            errors.push(diagnostics::needless_value(span, self.keyword.name()));
        }
    }

    /// Where the value is, or else the name.
    fn value_span(&self) -> Span {
        match &self.value {
            None => self.span,
            Some(Value::Text(text)) => text.span(),
            Some(Value::Path(path)) => path.span(),
        }
    }
}

enum Value {
    Text(LitStr),
    Path(Path),
}

/// `name` or `name = value`.
struct Written {
    name: Ident,
    value: Option<Value>,
}

impl Parse for Written {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.call(Ident::parse_any)?;
        if !input.peek(Token![=]) {
            return Ok(Self { name, value: None });
        }
        input.parse::<Token![=]>()?;
        let value = if input.peek(LitStr) {
            Value::Text(input.parse()?)
        } else {
            Value::Path(input.call(Path::parse_mod_style)?)
        };
        Ok(Self {
            name,
            value: Some(value),
        })
    }
}
