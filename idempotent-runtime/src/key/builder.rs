use super::{Fingerprint, KeyWriter};
use crate::store::Identity;

/// A key: a scope and a text, both of which may stand in SQL without quoting.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key {
    scope: &'static str,
    text: String,
    missing: Option<&'static str>,
    fingerprint: Option<Fingerprint>,
    /// The names that it had in earlier releases.
    former: Vec<Identity>,
}

impl Key {
    /// The namespace of the key.
    #[must_use]
    pub fn scope(&self) -> &'static str {
        self.scope
    }

    /// The canonical text, of at most 255 bytes.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name of the first part that has no value: such a key must not be used.
    #[must_use]
    pub fn missing(&self) -> Option<&'static str> {
        self.missing
    }

    pub(crate) fn former(&self) -> &[Identity] {
        &self.former
    }

    /// What the message holds beside its key, if the handler compares that.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint
    }

    pub(crate) fn fingerprint_bytes(&self) -> Option<&[u8]> {
        self.fingerprint.as_ref().map(Fingerprint::as_bytes)
    }

    /// Leaves one without a text.
    pub(crate) fn take(&mut self) -> Self {
        let nothing = Self {
            scope: self.scope,
            text: String::new(),
            missing: None,
            fingerprint: None,
            former: Vec::new(),
        };
        std::mem::replace(self, nothing)
    }

    /// Another one of the same scope, of a text that was claimed.
    pub(crate) fn with_text(&self, text: String) -> Self {
        Self {
            text,
            missing: None,
            former: Vec::new(),
            ..self.clone()
        }
    }

    pub(super) fn with_fingerprint(self, fingerprint: Fingerprint) -> Self {
        Self {
            fingerprint: Some(fingerprint),
            ..self
        }
    }
}

/// Builds a [`Key`] part by part: each begins, and is written.
#[derive(Debug)]
pub struct KeyBuilder {
    scope: &'static str,
    writer: KeyWriter,
}

impl KeyBuilder {
    /// Starts a key in `scope`, which the attribute has checked.
    #[must_use]
    pub fn new(scope: &'static str) -> Self {
        Self {
            scope,
            writer: KeyWriter::new(),
        }
    }

    /// Ends the key.
    #[must_use]
    pub fn finish(self) -> Key {
        let (text, missing) = self.writer.finish();
        Key {
            scope: self.scope,
            text,
            missing,
            fingerprint: None,
            former: Vec::new(),
        }
    }
}

/// Adds a name that the message had in an earlier release: another scope, other
/// parts, or both.
#[must_use]
pub fn formerly(mut key: Key, scope: Option<&'static str>, parts: Option<KeyBuilder>) -> Key {
    let (text, missing) = match parts {
        Some(parts) => parts.writer.finish(),
        None => (key.text.clone(), None),
    };
    key.missing = key.missing.or(missing);
    let identity = Identity {
        scope: scope.unwrap_or(key.scope),
        key: text,
    };
    let is_current = identity.scope == key.scope && identity.key == key.text;
    if !is_current && !key.former.contains(&identity) {
        key.former.push(identity);
    }
    key
}

/// Begins the part of this name, and says where to write it.
pub fn at<'b>(builder: &'b mut KeyBuilder, name: &'static str) -> &'b mut KeyWriter {
    builder.writer.begin(name);
    &mut builder.writer
}
