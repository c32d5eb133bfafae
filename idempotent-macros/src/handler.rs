//! The handler: its signature parsed, its body kept as tokens.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, FnArg, GenericParam, Ident, Pat, Signature, Token, Type, Visibility};

use crate::diagnostics::{self, Errors};

pub(crate) struct Handler {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) body: Group,
    pub(crate) params: Vec<Param>,
}

/// A parameter: the names it binds.
pub(crate) struct Param {
    pub(crate) names: Vec<Ident>,
    pub(crate) ty: Box<Type>,
    pub(crate) span: Span,
}

impl Parse for Handler {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let fork = input.fork();
        let sig: Signature = input.parse().map_err(|error| {
            if is_function(&fork) {
                error
            } else {
                diagnostics::not_a_function(fork.span())
            }
        })?;
        if input.peek(Token![;]) {
            return Err(diagnostics::no_body(&sig.ident));
        }
        let body: Group = input.parse()?;
        if body.delimiter() != Delimiter::Brace || !input.is_empty() {
            return Err(diagnostics::not_a_function(body.span()));
        }
        let body = take_inner_attributes(body, &mut attrs)?;
        let params = sig.inputs.iter().filter_map(param).collect();
        Ok(Self {
            attrs,
            vis,
            sig,
            body,
            params,
        })
    }
}

impl Handler {
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
        has_parameter || self.params.iter().any(|param| mentions_impl(&*param.ty))
    }

    /// The name in the signature, spelled as `name`.
    pub(crate) fn name(&self, name: &Ident) -> Option<&Ident> {
        self.names().find(|known| *known == name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Ident> {
        self.params.iter().flat_map(|param| &param.names)
    }

    /// Finds the transaction: named by `tx = …`, or the one of that type, or
    /// the one of that name.
    pub(crate) fn transaction(&self, named: Option<&Ident>, errors: &mut Errors) -> Option<Ident> {
        if let Some(named) = named {
            let found = self.name(named).cloned();
            if found.is_none() {
                errors.push(diagnostics::unknown_parameter(
                    named,
                    &named.to_string(),
                    self,
                ));
            }
            return found;
        }
        let typed: Vec<_> = self
            .params
            .iter()
            .filter(|param| is_transaction(&param.ty))
            .collect();
        if let [_, second, ..] = *typed {
            errors.push(diagnostics::two_transactions(second.span));
            return None;
        }
        let by_name = || {
            let param = self
                .params
                .iter()
                .find(|param| param.names.iter().any(|name| name == "tx"))?;
            if let Some(other) = no_transaction(&param.ty) {
                errors.push(diagnostics::not_a_transaction(param.ty.span(), other));
                return None;
            }
            Some(param)
        };
        let param = typed.first().copied().or_else(by_name);
        let name = param.and_then(|param| param.names.first()).cloned();
        if name.is_none() && errors.is_empty() {
            errors.push(diagnostics::no_transaction(&self.sig));
        }
        name
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
    bindings(&typed.pat, &mut names);
    Some(Param {
        names,
        ty: typed.ty.clone(),
        span: typed.pat.span(),
    })
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
        _ => {}
    }
}

/// `&mut …::Transaction<…>`.
fn is_transaction(ty: &Type) -> bool {
    matches!(ty, Type::Reference(reference)
        if reference.mutability.is_some() && last_segment(&reference.elem).is_some_and(|name| name == "Transaction"))
}

/// What stands in the transaction's place, if its name tells.
fn no_transaction(ty: &Type) -> Option<&'static str> {
    let ty = match ty {
        Type::Reference(reference) => &*reference.elem,
        ty => ty,
    };
    match last_segment(ty)?.to_string().as_str() {
        "Pool" | "PgPool" | "MySqlPool" | "SqlitePool" => Some("a pool"),
        "PoolConnection" | "PgConnection" | "MySqlConnection" | "SqliteConnection" => {
            Some("a bare connection")
        }
        _ => None,
    }
}

fn last_segment(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        Type::Paren(paren) => last_segment(&paren.elem),
        Type::Group(group) => last_segment(&group.elem),
        _ => None,
    }
}

/// Says whether `impl` stands anywhere in the tokens of a type.
pub(crate) fn mentions_impl(tokens: impl quote::ToTokens) -> bool {
    fn search(tokens: TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => ident == "impl",
            TokenTree::Group(group) => search(group.stream()),
            _ => false,
        })
    }
    search(tokens.to_token_stream())
}

fn is_function(input: ParseStream<'_>) -> bool {
    let mut words = std::iter::from_fn(|| input.call(Ident::parse_any).ok());
    words.any(|word| word == "fn")
}

/// `#![…]` at the start of the body moves to the function, since other
/// statements come before the body's own.
fn take_inner_attributes(body: Group, attrs: &mut Vec<Attribute>) -> syn::Result<Group> {
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
