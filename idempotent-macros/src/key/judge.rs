//! What the names in a key tell: of values that change, and of an offset that
//! stands alone.

use syn::Type;

use super::{Instability, KeyPath, Tail, is_offset, names_partition};
use crate::diagnostics;
use crate::handler::{Handler, last_segment, ungrouped};
use crate::mistakes::Errors;

/// Each part is judged for itself, and stays what it is.
pub(crate) fn judge_names(paths: &[KeyPath], handler: &Handler, errors: &mut Errors) {
    for path in paths {
        let names = path.tails.iter().filter(|tail| !is_message(tail, handler));
        let unstable = names.filter_map(|tail| Some((tail, Instability::of(&tail.name)?)));
        for (tail, instability) in unstable.take(1) {
            errors.push(diagnostics::unstable_name(tail, instability, &path.written));
        }
    }
}

/// An offset is a place in one partition. All parts are there.
pub(crate) fn judge_offset(paths: &[KeyPath], errors: &mut Errors) {
    if paths.iter().any(|path| names_partition(&path.text)) {
        return;
    }
    let offset = paths.iter().find_map(|path| {
        let tail = path.tails.iter().find(|tail| is_offset(&tail.name))?;
        Some((tail, path))
    });
    if let Some((tail, path)) = offset {
        errors.push(diagnostics::offset_alone(tail, &path.text, &path.written));
    }
}

/// A whole parameter may be a message by any name: `created: OrderCreated`.
fn is_message(tail: &Tail, handler: &Handler) -> bool {
    let mut params = handler.params.iter().filter(|param| param.is_whole);
    let param = params.find(|param| param.names.iter().any(|name| *name == tail.name));
    tail.is_root && param.is_some_and(|param| !is_scalar(&param.ty))
}

/// What holds a number or a text.
fn is_scalar(ty: &Type) -> bool {
    const SCALARS: [&str; 20] = [
        "Arc", "Box", "Cow", "Option", "Rc", "String", "bool", "f32", "f64", "i128", "i16", "i32",
        "i64", "i8", "isize", "str", "u128", "u16", "u32", "u64",
    ];
    match ungrouped(ty) {
        Type::Reference(reference) => is_scalar(&reference.elem),
        ty => last_segment(ty).is_some_and(|name| SCALARS.contains(&&*name.to_string())),
    }
}
