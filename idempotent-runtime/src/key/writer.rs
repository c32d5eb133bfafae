use core::{
    fmt::{self, Display, Write},
    mem,
};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};

use super::KeyText;

/// Collects the text of a key.
///
/// Everything pushed is encoded, and elements are joined with `/`: no sequence of calls leads out
/// of the alphabet of keys.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{KeyText, KeyWriter};
///
/// enum Source {
///     Unknown,
///     Shop { country: [u8; 2], branch: u32 },
/// }
///
/// impl KeyText for Source {
///     fn write_key(&self, writer: &mut KeyWriter) {
///         match self {
///             Self::Unknown => writer.push_variant("Unknown", |_| {}),
///             Self::Shop { country, branch } => writer.push_variant("Shop", |writer| {
///                 writer.push_bytes(country);
///                 writer.push(branch);
///             }),
///         }
///     }
/// }
///
/// assert_eq!(KeyWriter::text_of(&Source::Unknown), "Unknown");
/// assert_eq!(
///     KeyWriter::text_of(&Source::Shop { country: *b"TH", branch: 7 }),
///     "Shop(5448/7)",
/// );
/// ```
#[derive(Debug)]
pub struct KeyWriter {
    text: String,
    position: Position,
    on_empty: OnEmpty,
    part: &'static str,
    missing: Option<&'static str>,
}

impl KeyWriter {
    /// Returns the text that `value` has as the only part of a key.
    ///
    /// Like every key, it is shortened over 255 bytes. Useful in tests, and to look a key up.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::KeyWriter;
    /// assert_eq!(KeyWriter::text_of(&("ORD-1", 3u64)), "ORD-1/3");
    /// assert_eq!(KeyWriter::text_of(&"x".repeat(1000)).len(), 255);
    /// ```
    #[must_use]
    pub fn text_of<T: KeyText + ?Sized>(value: &T) -> String {
        let mut writer = Self::new();
        writer.push(value);
        writer.finish().0
    }

    /// Pushes another value.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{KeyText, KeyWriter};
    /// struct Range(u32, u32);
    ///
    /// impl KeyText for Range {
    ///     fn write_key(&self, writer: &mut KeyWriter) {
    ///         writer.push(&self.0);
    ///         writer.push(&self.1);
    ///     }
    /// }
    ///
    /// assert_eq!(KeyWriter::text_of(&Range(1, 9)), "1/9");
    /// ```
    pub fn push<T: KeyText + ?Sized>(&mut self, value: &T) {
        self.join();
        let wrote = self.group(|writer| value.write_key(writer));
        if wrote == Wrote::Nothing {
            self.empty();
        }
    }

    /// Pushes a text. An empty one makes the key missing, except inside a nullable value.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{KeyText, KeyWriter};
    /// struct Title<'a>(&'a str);
    ///
    /// impl KeyText for Title<'_> {
    ///     fn write_key(&self, writer: &mut KeyWriter) {
    ///         writer.push_str(self.0);
    ///     }
    /// }
    ///
    /// assert_eq!(KeyWriter::text_of(&Title("50 % off")), "50%20%25%20off");
    /// ```
    pub fn push_str(&mut self, text: &str) {
        self.join();
        if text.is_empty() {
            self.empty();
        }
        self.encode(text);
    }

    /// Pushes bytes, in lower-case hex. An empty slice counts as an empty text.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{KeyText, KeyWriter};
    /// struct Digest([u8; 4]);
    ///
    /// impl KeyText for Digest {
    ///     fn write_key(&self, writer: &mut KeyWriter) {
    ///         writer.push_bytes(&self.0);
    ///     }
    /// }
    ///
    /// assert_eq!(KeyWriter::text_of(&Digest([0xDE, 0xAD, 0, 1])), "dead0001");
    /// ```
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.join();
        if bytes.is_empty() {
            self.empty();
        }
        push_hex(&mut self.text, bytes);
    }

    /// Pushes what `value` displays. A `Display` that fails makes the key missing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{KeyText, KeyWriter};
    /// struct Celsius(i32);
    ///
    /// impl KeyText for Celsius {
    ///     fn write_key(&self, writer: &mut KeyWriter) {
    ///         writer.push_display(format_args!("{} °C", self.0));
    ///     }
    /// }
    ///
    /// assert_eq!(KeyWriter::text_of(&Celsius(-4)), "-4%20%C2%B0C");
    /// ```
    pub fn push_display(&mut self, value: impl Display) {
        self.join();
        let start = self.text.len();
        match write!(Encoder(self), "{value}") {
            Err(fmt::Error) => self.absent(),
            Ok(()) if self.text.len() == start => self.empty(),
            Ok(()) => {}
        }
    }

    /// Pushes an enum variant: `name`, or `name(…)` around what `payload` pushes.
    ///
    /// See [`KeyWriter`] for an example.
    pub fn push_variant(&mut self, name: &str, payload: impl FnOnce(&mut Self)) {
        self.push_str(name);
        let end_of_name = self.text.len();
        self.text.push('(');
        match self.group(payload) {
            Wrote::Something => self.text.push(')'),
            Wrote::Nothing => self.text.truncate(end_of_name),
        }
    }

    /// Pushes a value whose absence is a value of its own, `~`.
    ///
    /// A present value whose text itself begins with `~` or `(` stands in parentheses. Inside a
    /// nullable value an empty text is a value like any other.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{KeyText, KeyWriter};
    /// struct Reply { to: Option<u64> }
    ///
    /// impl KeyText for Reply {
    ///     fn write_key(&self, writer: &mut KeyWriter) {
    ///         writer.push_nullable(self.to.as_ref());
    ///     }
    /// }
    ///
    /// assert_eq!(KeyWriter::text_of(&Reply { to: None }), "~");
    /// assert_eq!(KeyWriter::text_of(&Reply { to: Some(7) }), "7");
    /// ```
    pub fn push_nullable<T: KeyText + ?Sized>(&mut self, value: Option<&T>) {
        self.join();
        let Some(value) = value else {
            self.text.push('~');
            return;
        };
        let start = self.text.len();
        let outer = mem::replace(&mut self.on_empty, OnEmpty::Value);
        self.group(|writer| value.write_key(writer));
        self.on_empty = outer;
        // `~` must mean "absent" and nothing else, also when what follows begins with an absent
        // value: unwrapped, (None, Some((None, None))) and (Some((None, None)), None) would meet.
        if matches!(self.text.as_bytes().get(start), Some(b'~' | b'(')) {
            self.text.insert(start, '(');
            self.text.push(')');
        }
    }

    /// Pushes a value whose absence makes the key missing, also inside a nullable value.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{KeyText, KeyWriter};
    /// struct Envelope { message_id: Option<String> }
    ///
    /// impl KeyText for Envelope {
    ///     fn write_key(&self, writer: &mut KeyWriter) {
    ///         writer.push_required(self.message_id.as_ref());
    ///     }
    /// }
    ///
    /// let envelope = Envelope { message_id: Some("m-1".to_owned()) };
    /// assert_eq!(KeyWriter::text_of(&envelope), "m-1");
    /// ```
    pub fn push_required<T: KeyText + ?Sized>(&mut self, value: Option<&T>) {
        if let Some(value) = value {
            self.push(value);
        } else {
            self.join();
            self.absent();
        }
    }

    pub(super) fn new() -> Self {
        Self {
            text: String::with_capacity(64),
            position: Position::Start,
            on_empty: OnEmpty::Missing,
            part: "",
            missing: None,
        }
    }

    /// Names the part that is pushed next.
    pub(super) fn begin(&mut self, part: &'static str) {
        self.part = part;
    }

    /// Returns the text, shortened if need be, and the name of the first missing part.
    pub(super) fn finish(self) -> (String, Option<&'static str>) {
        (shortened(self.text), self.missing)
    }

    /// Writes the separator where an element precedes.
    fn join(&mut self) {
        match self.position {
            Position::Start => self.position = Position::Inside,
            Position::Inside => self.text.push('/'),
        }
    }

    /// Runs `write` as if at the start of a text.
    fn group(&mut self, write: impl FnOnce(&mut Self)) -> Wrote {
        self.position = Position::Start;
        write(self);
        match mem::replace(&mut self.position, Position::Inside) {
            Position::Start => Wrote::Nothing,
            Position::Inside => Wrote::Something,
        }
    }

    fn encode(&mut self, text: &str) {
        self.text.extend(utf8_percent_encode(text, ENCODED));
    }

    fn empty(&mut self) {
        match self.on_empty {
            OnEmpty::Missing => self.absent(),
            OnEmpty::Value => {}
        }
    }

    fn absent(&mut self) {
        self.missing.get_or_insert(self.part);
    }
}

/// Whether an element precedes in the innermost group.
#[derive(Debug)]
enum Position {
    Start,
    Inside,
}

/// What an empty text means.
#[derive(Debug)]
enum OnEmpty {
    Missing,
    Value,
}

#[derive(PartialEq)]
enum Wrote {
    Nothing,
    Something,
}

/// Encodes what is displayed, piece by piece.
struct Encoder<'a>(&'a mut KeyWriter);

impl Write for Encoder<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.encode(text);
        Ok(())
    }
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    text.extend(bytes.iter().flat_map(|byte| {
        [byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)]))
    }));
}

/// Cuts a long text and adds the digest of the whole: `#` occurs in no other text.
fn shortened(mut text: String) -> String {
    if text.len() > LONGEST {
        let digest = Sha256::digest(text.as_bytes());
        text.truncate(LONGEST - 1 - 2 * digest.len());
        text.push('#');
        push_hex(&mut text, &digest);
    }
    text
}

/// Everything but `A-Z a-z 0-9 - . _ :`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b':');

/// The longest text in bytes: what an index of every supported database takes.
const LONGEST: usize = 255;
