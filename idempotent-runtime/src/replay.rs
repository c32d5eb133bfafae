//! Results that are stored with the key, and given back to duplicates.

use std::error::Error as StdError;

use crate::error::Cause;

/// Of a stored result, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// A value that can be stored, and read when the message comes again.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given back to a duplicate",
    label = "not stored by `replay`",
    note = "`replay` stores the value as JSON: derive `serde::Serialize` and `serde::Deserialize` for it, and enable the \
            feature `replay` of `idempotent-runtime`"
)]
pub trait Replayable: Sized {
    /// The value as JSON.
    ///
    /// # Errors
    ///
    /// Where it has none.
    fn encode(&self) -> Result<Vec<u8>, Box<dyn StdError + Send + Sync>>;

    /// The value from JSON.
    ///
    /// # Errors
    ///
    /// Where that is another value's.
    fn decode(json: &[u8]) -> Result<Self, Box<dyn StdError + Send + Sync>>;
}

#[cfg(feature = "replay")]
#[diagnostic::do_not_recommend]
impl<T: serde::Serialize + serde::de::DeserializeOwned> Replayable for T {
    fn encode(&self) -> Result<Vec<u8>, Box<dyn StdError + Send + Sync>> {
        Ok(serde_json::to_vec(self)?)
    }

    fn decode(json: &[u8]) -> Result<Self, Box<dyn StdError + Send + Sync>> {
        Ok(serde_json::from_slice(json)?)
    }
}

type Boxed = Box<dyn StdError + Send + Sync>;

/// How a handler's value is stored and read.
#[derive(Debug)]
pub(crate) struct Codec<T> {
    encode: fn(&T) -> Result<Vec<u8>, Boxed>,
    decode: fn(&[u8]) -> Result<T, Boxed>,
}

impl<T> Clone for Codec<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Codec<T> {}

impl<T: Replayable> Codec<T> {
    pub(crate) fn new() -> Self {
        Self {
            encode: T::encode,
            decode: T::decode,
        }
    }
}

impl<T> Codec<T> {
    /// The bytes to store. What cannot be read again is not stored: an error
    /// now, before the commit, and not at every duplicate for ever after.
    pub(crate) fn encode(&self, value: &T) -> Result<Vec<u8>, Cause> {
        let bytes = (self.encode)(value).map_err(Cause::Unstorable)?;
        if bytes.len() > MOST_BYTES {
            let size = format!("{} bytes of JSON, {MOST_BYTES} at most", bytes.len());
            return Err(Cause::Unstorable(size.into()));
        }
        (self.decode)(&bytes).map_err(Cause::Unstorable)?;
        Ok(bytes)
    }

    /// The value of before.
    pub(crate) fn decode(&self, stored: Option<&[u8]>) -> Result<T, Cause> {
        let Some(bytes) = stored else {
            let absent = "none was stored: the message was processed without `replay`";
            return Err(Cause::Unreadable(absent.into()));
        };
        (self.decode)(bytes).map_err(Cause::Unreadable)
    }
}
