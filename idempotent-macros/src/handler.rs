//! The handler: its signature parsed, its body kept as tokens.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, FnArg, GenericParam, Ident, Pat, Signature, Token, Type, Visibility};

use crate::diagnostics;

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
        let (item, span) = (input.fork(), input.span());
        let sig: Signature = input.parse().map_err(|error| {
            if is_function(&item) {
                error
            } else {
                diagnostics::not_a_function(span)
            }
        })?;
        if input.peek(Token![;]) {
            return Err(diagnostics::no_body(&sig.ident));
        }
        let body = input.parse()?;
        let body = block(&body).ok_or_else(|| diagnostics::not_a_function(body.span()))?;
        let body = take_inner_attributes(&body, &mut attrs)?;
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
        self.binding(name).map(|(_, name)| name)
    }

    fn binding(&self, name: &Ident) -> Option<(&Param, &Ident)> {
        self.params.iter().find_map(|param| {
            let known = param.names.iter().find(|known| *known == name)?;
            Some((param, known))
        })
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Ident> {
        self.params.iter().flat_map(|param| &param.names)
    }

    /// Finds the transaction: named by `tx = …`, or the one of that type, or
    /// the one of that name.
    pub(crate) fn transaction(&self, named: Option<&Ident>) -> syn::Result<Ident> {
        let (param, name) = match named {
            Some(named) => self.named_transaction(named)?,
            None => self.only_transaction()?,
        };
        check_transaction(&param.ty)?;
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
            (None, _) => self
                .binding(&Ident::new("tx", Span::call_site()))
                .ok_or_else(|| diagnostics::no_transaction(&self.sig)),
        }
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
        // Every alternative binds the same names.
        Pat::Or(pat) => pat
            .cases
            .first()
            .into_iter()
            .for_each(|pat| bindings(pat, names)),
        _ => {}
    }
}

/// `&mut …::Transaction<…>`.
fn is_transaction(ty: &Type) -> bool {
    matches!(ungrouped(ty), Type::Reference(reference)
        if reference.mutability.is_some() && last_segment(&reference.elem).is_some_and(|name| name == "Transaction"))
}

/// Refuses what cannot be the transaction, if its name tells.
fn check_transaction(ty: &Type) -> syn::Result<()> {
    let (referent, is_mut) = match ungrouped(ty) {
        Type::Reference(reference) => (&*reference.elem, reference.mutability.is_some()),
        ty => (ty, false),
    };
    let name = last_segment(referent).map(ToString::to_string);
    match name.as_deref() {
        Some("Pool" | "PgPool" | "MySqlPool" | "SqlitePool") => {
            Err(diagnostics::not_a_transaction(ty, "a pool"))
        }
        Some("PoolConnection" | "PgConnection" | "MySqlConnection" | "SqliteConnection") => {
            Err(diagnostics::not_a_transaction(ty, "a bare connection"))
        }
        Some("Transaction") if !is_mut => Err(diagnostics::transaction_not_mut(ty)),
        _ => Ok(()),
    }
}

fn last_segment(ty: &Type) -> Option<&Ident> {
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
