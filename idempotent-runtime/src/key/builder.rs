use super::{KeyWriter, Part, PartOption, Text, TextOption};

/// A key: a scope and a text, both of which may stand in SQL without quoting.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key {
    scope: &'static str,
    text: String,
    missing: Option<&'static str>,
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
}

/// Builds a [`Key`] part by part, through the functions of this module.
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
        }
    }

    fn begin(&mut self, name: &'static str) -> &mut KeyWriter {
        self.writer.begin(name);
        &mut self.writer
    }
}

/// A plain part.
pub fn part<T: Part + ?Sized>(builder: &mut KeyBuilder, name: &'static str, value: &T) {
    builder.begin(name).push(value);
}

/// `stable(…)`.
pub fn stable_part<T: Text + ?Sized>(builder: &mut KeyBuilder, name: &'static str, value: &T) {
    builder.begin(name).push(value);
}

/// `required(…)`.
pub fn required_part<O: PartOption + ?Sized>(
    builder: &mut KeyBuilder,
    name: &'static str,
    value: &O,
) {
    value.push_required(builder.begin(name));
}

/// `stable(required(…))`.
pub fn required_stable_part<O: TextOption + ?Sized>(
    builder: &mut KeyBuilder,
    name: &'static str,
    value: &O,
) {
    value.push_required(builder.begin(name));
}

/// `nullable(…)`.
pub fn nullable_part<O: PartOption + ?Sized>(
    builder: &mut KeyBuilder,
    name: &'static str,
    value: &O,
) {
    value.push_nullable(builder.begin(name));
}

/// `stable(nullable(…))`.
pub fn nullable_stable_part<O: TextOption + ?Sized>(
    builder: &mut KeyBuilder,
    name: &'static str,
    value: &O,
) {
    value.push_nullable(builder.begin(name));
}
