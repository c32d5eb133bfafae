//! The handler: its signature parsed, its body kept as tokens.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Attribute, FnArg, GenericArgument, GenericParam, Ident, Pat, PathArguments, Signature, Token,
    Type, Visibility,
};

use crate::diagnostics;

pub(crate) struct Handler {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) body: Group,
    /// The body's opening brace.
    pub(crate) open: Span,
    pub(crate) params: Vec<Param>,
    /// One message of a batch, which the key may start from.
    pub(crate) element: Option<Ident>,
}

/// A parameter: the names it binds.
pub(crate) struct Param {
    pub(crate) names: Vec<Ident>,
    pub(crate) ty: Box<Type>,
    /// It is no pattern: the one name is the whole.
    pub(crate) is_whole: bool,
    pub(crate) span: Span,
}

impl Parse for Handler {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let (item, span) = (input.fork(), input.span());
        let sig: Signature = input.parse().map_err(|error| {
            if is_function(&item) {
                diagnostics::unread_signature(&error)
            } else {
                diagnostics::not_a_function(span)
            }
        })?;
        if input.peek(Token![;]) {
            return Err(diagnostics::no_body(&sig.ident));
        }
        let body = input.parse()?;
        let body = block(&body).ok_or_else(|| diagnostics::not_a_function(body.span()))?;
        let open = body.span_open();
        let body = take_inner_attributes(&body, &mut attrs)?;
        let params = sig.inputs.iter().filter_map(param).collect();
        Ok(Self {
            attrs,
            vis,
            sig,
            body,
            open,
            params,
            element: None,
        })
    }
}

impl Handler {
    /// Takes away a second `#[idempotent]`.
    pub(crate) fn take_second(&mut self) -> Option<Attribute> {
        let second = self.attrs.iter().position(is_ours)?;
        Some(self.attrs.remove(second))
    }

    /// Says whether a part of the key may start from the name.
    pub(crate) fn is_root(&self, name: &Ident) -> bool {
        name == "self" && self.receiver().is_some() || self.name(name).is_some()
    }

    /// `Self` stands in implementations and traits only.
    pub(crate) fn mentions_self_type(&self) -> bool {
        mentions(&self.sig, "Self") || mentions(&self.body, "Self")
    }

    /// What `#[async_trait]` makes of a parameter without a name of its own.
    pub(crate) fn hidden_patterns(&self) -> impl Iterator<Item = &Param> {
        let is_boxed = self.sig.asyncness.is_none();
        self.params.iter().filter(move |param| {
            let mut names = param.names.iter();
            is_boxed && names.any(|name| name.to_string().starts_with("__arg"))
        })
    }

    pub(crate) fn receiver(&self) -> Option<&Token![self]> {
        self.sig.receiver().map(|receiver| &receiver.self_token)
    }

    /// Says whether one scope would stand for several instances.
    pub(crate) fn is_generic(&self) -> bool {
        let has_parameter = self
            .sig
            .generics
            .params
            .iter()
            .any(|param| !matches!(param, GenericParam::Lifetime(_)));
        has_parameter || self.params.iter().any(|param| mentions(&param.ty, "impl"))
    }

    /// The name in the signature, spelled as `name`.
    pub(crate) fn name(&self, name: &Ident) -> Option<&Ident> {
        let element = self.element.as_ref().filter(|element| *element == name);
        element.or_else(|| self.binding(name).map(|(_, name)| name))
    }

    pub(crate) fn binding(&self, name: &Ident) -> Option<(&Param, &Ident)> {
        self.params.iter().find_map(|param| {
            let known = param.names.iter().find(|known| *known == name)?;
            Some((param, known))
        })
    }

    /// The token that names the database, or else the type of the parameter.
    pub(crate) fn database_span(&self, tx: &Ident) -> Span {
        let ty = self
            .binding(tx)
            .map(|(param, _)| match ungrouped(&param.ty) {
                Type::Reference(reference) => ungrouped(&reference.elem),
                ty => ty,
            });
        let Some(Type::Path(path)) = ty else {
            return tx.span();
        };
        let Some(last) = path.path.segments.last() else {
            return tx.span();
        };
        let database = match &last.arguments {
            PathArguments::AngleBracketed(arguments) => match arguments.args.last() {
                Some(GenericArgument::Type(ty)) => last_segment(ty),
                _ => None,
            },
            _ => None,
        };
        database.unwrap_or(&last.ident).span()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Ident> {
        self.params.iter().flat_map(|param| &param.names)
    }
}

impl Param {
    /// `_` and `_name` say that the parameter does not matter.
    pub(crate) fn is_ignored(&self) -> bool {
        self.names
            .iter()
            .all(|name| name.to_string().starts_with('_'))
    }
}

fn param(input: &FnArg) -> Option<Param> {
    let FnArg::Typed(typed) = input else {
        return None;
    };
    let mut names = Vec::new();
    if !is_unit_struct(&typed.pat, &typed.ty) {
        bindings(&typed.pat, &mut names);
    }
    Some(Param {
        names,
        ty: typed.ty.clone(),
        is_whole: matches!(&*typed.pat, Pat::Ident(pat) if pat.subpat.is_none()),
        span: typed.pat.span(),
    })
}

/// `Context: Context`, which binds nothing.
fn is_unit_struct(pat: &Pat, ty: &Type) -> bool {
    matches!(pat, Pat::Ident(pat)
        if pat.subpat.is_none() && last_segment(ty).is_some_and(|name| *name == pat.ident))
}

fn bindings(pat: &Pat, names: &mut Vec<Ident>) {
    match pat {
        Pat::Ident(ident) => {
            names.push(ident.ident.clone());
            if let Some((_, pat)) = &ident.subpat {
                bindings(pat, names);
            }
        }
        Pat::Struct(pat) => pat
            .fields
            .iter()
            .for_each(|field| bindings(&field.pat, names)),
        Pat::Tuple(pat) => pat.elems.iter().for_each(|pat| bindings(pat, names)),
        Pat::TupleStruct(pat) => pat.elems.iter().for_each(|pat| bindings(pat, names)),
        Pat::Slice(pat) => pat.elems.iter().for_each(|pat| bindings(pat, names)),
        Pat::Reference(pat) => bindings(&pat.pat, names),
        Pat::Paren(pat) => bindings(&pat.pat, names),
        // Every alternative binds the same names.
        Pat::Or(pat) => pat
            .cases
            .first()
            .into_iter()
            .for_each(|pat| bindings(pat, names)),
        _ => {}
    }
}

pub(crate) fn last_segment(ty: &Type) -> Option<&Ident> {
    match ungrouped(ty) {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}

/// The type without parentheses, also without those that a macro puts around
/// its `$ty:ty`.
pub(crate) fn ungrouped(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => ungrouped(&group.elem),
        Type::Paren(paren) => ungrouped(&paren.elem),
        ty => ty,
    }
}

/// Says whether a word stands anywhere in the tokens.
pub(crate) fn mentions(tokens: impl ToTokens, word: &str) -> bool {
    let mut tokens = tokens.to_token_stream().into_iter();
    tokens.any(|token| match token {
        TokenTree::Ident(ident) => ident == word,
        TokenTree::Group(group) => mentions(group.stream(), word),
        _ => false,
    })
}

/// `#[idempotent]`, by whatever path.
fn is_ours(attribute: &Attribute) -> bool {
    let last = attribute.path().segments.last();
    last.is_some_and(|last| last.ident == "idempotent")
}

fn is_function(input: ParseStream<'_>) -> bool {
    let mut words = std::iter::from_fn(|| input.call(Ident::parse_any).ok());
    words.any(|word| word == "fn")
}

/// `{ … }`, also where a macro hands on its `$body:block`.
fn block(body: &TokenTree) -> Option<Group> {
    let TokenTree::Group(group) = body else {
        return None;
    };
    match group.delimiter() {
        Delimiter::Brace => Some(group.clone()),
        Delimiter::None => block(&group.stream().into_iter().next()?),
        Delimiter::Bracket | Delimiter::Parenthesis => None,
    }
}

/// `#![…]` at the start of the body moves to the function, since other
/// statements come before the body's own.
fn take_inner_attributes(body: &Group, attrs: &mut Vec<Attribute>) -> syn::Result<Group> {
    let parser = |input: ParseStream<'_>| {
        let inner = input.call(Attribute::parse_inner)?;
        Ok((inner, input.parse::<TokenStream>()?))
    };
    let (inner, stream) = syn::parse::Parser::parse2(parser, body.stream())?;
    attrs.extend(inner.into_iter().map(|attr| Attribute {
        style: syn::AttrStyle::Outer,
        ..attr
    }));
    let mut rest = Group::new(Delimiter::Brace, stream);
    rest.set_span(body.span());
    Ok(rest)
}
