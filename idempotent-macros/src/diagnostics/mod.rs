//! Every message of the attribute. First line: the fact. Second: what to write.

mod arguments;
mod handler;
mod key;

pub(crate) use arguments::*;
pub(crate) use handler::*;
pub(crate) use key::*;
