//! Looks into a handler error of any type, to see whether a retry may help.
//!
//! `anyhow::Error` and boxed errors are no `std::error::Error`, so that no one
//! bound fits all. The macro picks the first of four traits that applies, by
//! the number of references that method lookup strips (autoref
//! specialisation).

use std::error::Error as StdError;
use std::ops::Deref;

use crate::disposition;

/// The error under test.
#[derive(Debug)]
pub struct Probe<'e, E>(pub &'e E);

/// Picks one of the traits below.
#[doc(hidden)]
#[macro_export]
macro_rules! __is_retryable {
    ($error:expr) => {{
        #[allow(
            unused_imports,
            reason = "the error's type decides which of them is used"
        )]
        use $crate::__private::{ViaDeref as _, ViaDerefSync as _, ViaError as _, ViaNothing as _};
        (&&&&$crate::__private::Probe($error)).is_retryable_in_chain()
    }};
}

/// An `Error`.
pub trait ViaError {
    /// Searches the chain.
    fn is_retryable_in_chain(&self) -> bool;
}

impl<E: StdError + 'static> ViaError for &&&Probe<'_, E> {
    fn is_retryable_in_chain(&self) -> bool {
        disposition::is_retryable(self.0)
    }
}

/// A smart pointer to an error: `anyhow::Error`, `Box<dyn Error + Send + Sync>`.
pub trait ViaDerefSync {
    /// Searches the chain.
    fn is_retryable_in_chain(&self) -> bool;
}

impl<E: Deref<Target = dyn StdError + Send + Sync + 'static>> ViaDerefSync for &&Probe<'_, E> {
    fn is_retryable_in_chain(&self) -> bool {
        disposition::is_retryable(&**self.0)
    }
}

/// `Box<dyn Error>`.
pub trait ViaDeref {
    /// Searches the chain.
    fn is_retryable_in_chain(&self) -> bool;
}

impl<E: Deref<Target = dyn StdError + 'static>> ViaDeref for &Probe<'_, E> {
    fn is_retryable_in_chain(&self) -> bool {
        disposition::is_retryable(&**self.0)
    }
}

/// Anything else says nothing: it is not retried.
pub trait ViaNothing {
    /// No chain to search.
    fn is_retryable_in_chain(&self) -> bool;
}

impl<E> ViaNothing for Probe<'_, E> {
    fn is_retryable_in_chain(&self) -> bool {
        false
    }
}
