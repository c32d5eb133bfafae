//! What the arguments and the signature agree on.

use proc_macro2::{Ident, Span, TokenStream};
use syn::LitStr;
use syn::ext::IdentExt;

use crate::args::{Answer, Args, Busy, Each, Guard};
use crate::diagnostics;
use crate::handler::{Handler, last_segment};
use crate::key::{self, BoundPath, KeyPath};
use crate::mistakes::Errors;

/// Everything that the arguments and the signature have agreed on.
pub(crate) struct Plan {
    pub(crate) key: Vec<BoundPath>,
    pub(crate) key_name: Span,
    pub(crate) scope: Scope,
    pub(crate) tx: Ident,
    pub(crate) answer: Answer,
    pub(crate) each: Option<Each>,
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) former: Vec<Former>,
    /// Seconds for which keys are kept.
    pub(crate) retain: Option<u64>,
    /// Only compared, and listed.
    pub(crate) redelivery: Option<u64>,
    pub(crate) busy: Busy,
    pub(crate) guard: Guard,
    pub(crate) bind: Option<Ident>,
    pub(crate) table: Option<LitStr>,
}

/// What else must be the same when a key comes again.
pub(crate) struct Fingerprint {
    pub(crate) parts: Vec<BoundPath>,
    /// The word `fingerprint`.
    pub(crate) name: Span,
}

/// A name that the messages had before.
pub(crate) struct Former {
    pub(crate) scope: Option<LitStr>,
    /// Its parts, if they are not those of the key.
    pub(crate) parts: Option<Vec<BoundPath>>,
    /// The word `key` in it, or else `was`.
    pub(crate) name: Span,
}

pub(crate) enum Scope {
    Written(LitStr),
    /// Follows the module's path.
    Default {
        suffix: String,
    },
}

impl Plan {
    /// Of the key, of the fingerprint, and of earlier keys.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &BoundPath> {
        let compared = self.fingerprint.iter();
        let former = self
            .former
            .iter()
            .filter_map(|former| former.parts.as_ref());
        self.key
            .iter()
            .chain(compared.flat_map(|fingerprint| &fingerprint.parts))
            .chain(former.flatten())
    }
}

/// What is written, what it names, what that makes of messages: each as far as
/// it does not follow from a mistake.
pub(crate) fn plan(args: Args, handler: &Handler, mut errors: Errors) -> syn::Result<Plan> {
    if let Some(hidden) = hidden_patterns(handler) {
        return Err(errors.and(hidden)); // any name may be in one
    }
    let tx = transaction(&args, handler, &mut errors);
    let key = key(&args, handler, &mut errors);
    let fingerprint = fingerprint(&args, handler, &mut errors);
    let is_batch_known = check_each(&args, handler, key.is_some(), &mut errors);
    let former = former(&args, handler, &mut errors);
    check_retention(&args, &mut errors);
    let is_skip_known = check_skip(&args, handler, &mut errors);
    check_bind(&args, handler, &mut errors);
    let is_compared_known = args.is_read("fingerprint");
    let is_known = is_skip_known && is_compared_known && is_batch_known;
    if let (Some(tx), Some(_), true) = (&tx, &key, is_known) {
        check_grain(&args, handler, tx, &mut errors);
    }
    let scope =
        (key.is_some() && args.is_read("scope")).then(|| scope(&args, handler, &mut errors));
    match (tx, key, scope, errors.finish()) {
        (_, _, _, Err(errors)) => Err(errors),
        (Some(tx), Some(key), Some(scope), Ok(())) => Ok(Plan {
            key,
            key_name: args.key_name.unwrap_or_else(Span::call_site),
            scope,
            tx,
            answer: args.answer(),
            each: args.each.map(|each| as_parameter(each, handler)),
            fingerprint,
            former,
            retain: args.retain.map(|period| period.seconds),
            redelivery: args.redelivery.map(|period| period.seconds),
            busy: args.busy,
            guard: args.guard,
            bind: args.bind,
            table: args.table,
        }),
        // One is missing only where a mistake says why.
        (_, _, _, Ok(())) => Err(diagnostics::missing_key()),
    }
}

fn transaction(args: &Args, handler: &Handler, errors: &mut Errors) -> Option<Ident> {
    if !args.is_read("tx") {
        return None;
    }
    match handler.transaction(args.tx.as_ref()) {
        Ok(tx) => Some(tx),
        Err(error) => {
            errors.push(error);
            None
        }
    }
}

/// The whole key, if every part is understood and bound, and one names a
/// parameter.
fn key(args: &Args, handler: &Handler, errors: &mut Errors) -> Option<Vec<BoundPath>> {
    if !args.is_read("each") {
        return None; // it may name what the key starts from
    }
    key::judge_names(&args.key, handler, errors);
    let bound = args.key.iter().map(|path| key::bind(path, handler, errors));
    let key: Vec<_> = bound.collect();
    let key: Option<_> = key.into_iter().collect();
    let key = key.filter(|_| args.is_read("key"))?;
    key::judge_offset(&args.key, errors);
    if args
        .key
        .iter()
        .flat_map(|path| &path.roots)
        .any(|root| handler.is_root(root))
    {
        return Some(key);
    }
    let texts: Vec<_> = args.key.iter().map(|path| path.text.as_str()).collect();
    let parts: TokenStream = args.key.iter().map(|path| path.tokens.clone()).collect();
    errors.push(diagnostics::constant(parts, &texts.join(", ")));
    None
}

/// Its parts, if every one is understood and bound.
fn fingerprint(args: &Args, handler: &Handler, errors: &mut Errors) -> Option<Fingerprint> {
    let mut mistakes = Errors::default();
    let paths = &args.fingerprint;
    key::judge_names(paths, handler, &mut mistakes);
    let bound = paths
        .iter()
        .map(|path| key::bind(path, handler, &mut mistakes));
    let parts: Vec<_> = bound.collect();
    let parts: Option<Vec<_>> = parts.into_iter().collect();
    if let Err(mistakes) = mistakes.of_fingerprint().finish() {
        errors.push(mistakes);
    }
    Some(Fingerprint {
        parts: parts?,
        name: args.fingerprint_name?,
    })
}

/// With the name of the parameter as it stands in the signature.
fn as_parameter(each: Each, handler: &Handler) -> Each {
    let list = handler.binding(&each.list).map(|(_, list)| list.clone());
    Each {
        list: list.unwrap_or(each.list),
        ..each
    }
}

/// The earlier names, each of one to one for the name of now.
fn former(args: &Args, handler: &Handler, errors: &mut Errors) -> Vec<Former> {
    let mut former = Vec::new();
    check_names(args, errors);
    for was in &args.was {
        let name = was.key_name.unwrap_or(was.name);
        let parts = was.key.as_ref().map(|key| {
            if was.is_whole {
                check_grain_of_before(key, name, args, errors);
            }
            key::judge_names(key, handler, errors);
            key::judge_offset(key, errors);
            let bound = key
                .iter()
                .filter_map(|path| key::bind(path, handler, errors));
            bound.collect()
        });
        former.push(Former {
            scope: was.scope.clone(),
            parts,
            name,
        });
    }
    former
}

/// Each scope is that of one key: the keys of two would meet in it.
fn check_names(args: &Args, errors: &mut Errors) {
    if !args.is_read("scope") || !args.is_read("key") {
        return;
    }
    let now = args.scope.as_ref().map(LitStr::value);
    let mut known = vec![(now.clone(), texts(&args.key))];
    for was in args.was.iter().filter(|was| was.is_whole) {
        let Some(scope) = was.scope.as_ref().map(LitStr::value).or(now.clone()) else {
            errors.push(diagnostics::was_without_scope(was.name));
            continue;
        };
        let is_now = now.as_ref() == Some(&scope);
        let key = texts(was.key.as_ref().unwrap_or(&args.key));
        let in_scope = known
            .iter()
            .find(|(other, _)| other.as_ref() == Some(&scope));
        match in_scope {
            Some((_, other)) if *other != key => {
                let place = was.key_name.unwrap_or(was.name);
                errors.push(diagnostics::two_keys_in_scope(place, &scope, is_now));
            }
            Some(_) if is_now => errors.push(diagnostics::same_as_now(was.name)),
            Some(_) => errors.push(diagnostics::repeated_was(was.name)),
            None => known.push((Some(scope), key)),
        }
    }
}

fn texts(key: &[KeyPath]) -> Vec<&str> {
    key.iter().map(|path| path.written.as_str()).collect()
}

/// A conversion does not make another part.
fn values(key: &[KeyPath]) -> Vec<&str> {
    key.iter().map(|path| path.value.as_str()).collect()
}

/// A key that has all the old parts and more is finer: measured, a record of
/// before would swallow all of its messages.
fn check_grain_of_before(was: &[KeyPath], name: Span, args: &Args, errors: &mut Errors) {
    let (was, now) = (values(was), values(&args.key));
    let more: Vec<String> = now
        .iter()
        .filter(|part| !was.contains(part))
        .map(ToString::to_string)
        .collect();
    if was.iter().all(|part| now.contains(part)) && !more.is_empty() && args.is_read("key") {
        errors.push(diagnostics::finer_than_before(name, &more));
    }
}

/// Says whether the batch, if there is one, is known.
fn check_each(args: &Args, handler: &Handler, has_key: bool, errors: &mut Errors) -> bool {
    let Some(Each { element, list }) = &args.each else {
        return args.is_read("each");
    };
    for (name, span) in args.of_one_message() {
        errors.push(diagnostics::excluded_by_each(name, span));
    }
    if element == list {
        errors.push(diagnostics::batch_as_element(element));
        return false;
    }
    let Some((param, _)) = handler.binding(list) else {
        errors.push(diagnostics::unknown_parameter(
            list,
            &list.to_string(),
            handler,
        ));
        return false;
    };
    if last_segment(&param.ty).is_none_or(|name| name != "Vec") {
        errors.push(diagnostics::no_vec(&param.ty, element));
    }
    let mut roots = args.key.iter().flat_map(|path| &path.roots);
    if let Some(list) = roots.clone().find(|root| *root == list) {
        errors.push(diagnostics::batch_in_key(list, element));
    } else if has_key && !roots.any(|root| root == element) {
        errors.push(diagnostics::batch_without_element(element));
    }
    true
}

/// A key that is forgotten before the last redelivery lets that run again.
fn check_retention(args: &Args, errors: &mut Errors) {
    if let (Some(retain), Some(redelivery)) = (&args.retain, &args.redelivery)
        && retain.seconds < redelivery.seconds
    {
        errors.push(diagnostics::retained_too_short(
            &retain.written,
            &redelivery.written,
        ));
    }
}

/// Says whether all that is skipped is known.
fn check_skip(args: &Args, handler: &Handler, errors: &mut Errors) -> bool {
    let mut is_known = args.is_read("skip");
    for (index, name) in args.skip.iter().enumerate() {
        if name == "self" {
            errors.push(diagnostics::skipped_self(name));
        } else if args.skip.iter().take(index).any(|other| other == name) {
            errors.push(diagnostics::skipped_twice(name));
        } else if handler.name(name).is_none() {
            let text = name.to_string();
            errors.push(diagnostics::unknown_parameter(name, &text, handler));
            is_known = false;
        }
    }
    is_known
}

fn hidden_patterns(handler: &Handler) -> Option<syn::Error> {
    let mut errors = Errors::default();
    for param in handler.hidden_patterns() {
        errors.push(diagnostics::hidden_pattern(param.span));
    }
    errors.finish().err()
}

fn check_bind(args: &Args, handler: &Handler, errors: &mut Errors) {
    if let Some(bind) = &args.bind
        && handler.name(bind).is_some()
    {
        errors.push(diagnostics::bound_name_taken(bind));
    }
}

/// The scope as written, or the function's path and key.
fn scope(args: &Args, handler: &Handler, errors: &mut Errors) -> Scope {
    if let Some(scope) = &args.scope {
        return Scope::Written(scope.clone());
    }
    let name = handler.sig.ident.unraw().to_string();
    let paths = &args.key;
    let parts: Vec<String> = paths
        .iter()
        .map(|path| path.text.replace("r#", ""))
        .collect();
    let suffix = format!("::{name}({})", parts.join(","));
    let why = if handler.receiver().is_some() {
        Some("a method's path, the default, does not name its type")
    } else if handler.mentions_self_type() {
        Some("an associated function's path, the default, does not name its type")
    } else if handler.is_generic() {
        Some("it is generic, and all its instances would share the default")
    } else if !paths.iter().all(|path| path.is_plain) {
        Some("the default is made of fields, and the key holds another expression")
    } else if !suffix.is_ascii() {
        Some("the default, its name and key, would not be ASCII")
    } else if suffix.len() > 120 {
        Some("the default, its name and key, would be too long")
    } else {
        None
    };
    if let Some(why) = why {
        errors.push(diagnostics::scope_required(&name, why));
    }
    Scope::Default { suffix }
}

/// Every parameter tells messages apart, or is said not to.
fn check_grain(args: &Args, handler: &Handler, tx: &Ident, errors: &mut Errors) {
    let Args { key, skip, .. } = args;
    let is_in_key = |name: &Ident| key.iter().any(|path| path.roots.contains(name));
    let is_batch = |name: &Ident| args.each.as_ref().is_some_and(|each| each.list == *name);
    let is_compared = |name: &Ident| {
        args.fingerprint
            .iter()
            .any(|path| path.roots.contains(name))
    };
    for root in key
        .iter()
        .chain(&args.fingerprint)
        .flat_map(|path| &path.roots)
    {
        if root == tx {
            errors.push(diagnostics::transaction_in_key(root));
        }
    }
    for name in skip {
        if name == tx {
            errors.push(diagnostics::skipped_transaction(name));
        } else if is_in_key(name) {
            errors.push(diagnostics::in_key_and_skipped(name));
        } else if is_compared(name) {
            errors.push(diagnostics::compared_and_skipped(name));
        }
    }
    for param in &handler.params {
        let is_covered = param.is_ignored()
            || param.names.iter().any(|name| {
                name == tx
                    || is_batch(name)
                    || is_in_key(name)
                    || is_compared(name)
                    || skip.contains(name)
            });
        if let (false, Some(name)) = (is_covered, param.names.first()) {
            errors.push(diagnostics::too_coarse(
                param.span,
                name,
                &args.key_with(name),
            ));
        }
    }
}
