//! What a message holds beside its key, as a digest.

use sha2::{Digest, Sha256};

use super::{Key, KeyBuilder};

/// A digest of which parts there are, and one of what they hold.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Fingerprint([u8; LIST + VALUES]);

const LIST: usize = 8;
const VALUES: usize = 32;

impl Fingerprint {
    fn new(list: &str, text: &str) -> Self {
        let digest = |text: &str| -> [u8; VALUES] { Sha256::digest(text).into() };
        let mut bytes = [0; LIST + VALUES];
        let (of_list, of_values) = bytes.split_at_mut(LIST);
        of_list.copy_from_slice(&digest(list)[..LIST]);
        of_values.copy_from_slice(&digest(text));
        Self(bytes)
    }

    pub(crate) const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Says whether a stored one is of the same parts and another message.
    pub(crate) fn differs_from(&self, stored: &[u8]) -> bool {
        stored.len() == self.0.len() && stored[..LIST] == self.0[..LIST] && *stored != self.0
    }
}

/// Starts the parts of a fingerprint.
#[must_use]
pub fn new_fingerprint() -> KeyBuilder {
    KeyBuilder::new("")
}

/// Ends it, and gives it to the key. `list` says which parts there are.
#[must_use]
pub fn finish_fingerprint(key: Key, list: &'static str, parts: KeyBuilder) -> Key {
    let fingerprint = Fingerprint::new(list, parts.finish().text());
    key.with_fingerprint(fingerprint)
}

#[cfg(test)]
mod tests {
    use super::Fingerprint;

    #[test]
    fn only_other_values_of_the_same_parts_differ() {
        let stored = Fingerprint::new("msg.amount", "10");
        let differs = |list, text| Fingerprint::new(list, text).differs_from(stored.as_bytes());
        assert!(!differs("msg.amount", "10"));
        assert!(differs("msg.amount", "99"));
        assert!(!differs("msg.amount,msg.account", "99"));
        assert!(!Fingerprint::new("msg.amount", "99").differs_from(b"short"));
        assert!(!Fingerprint::new("msg.amount", "99").differs_from(b""));
    }
}
