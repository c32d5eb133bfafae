//! Names of tables that are not ours: quoted, never put into a statement as they are.

use std::fmt::{self, Display, Formatter};

/// The name of a table, optionally with a schema, as the catalog has it.
#[derive(Debug)]
pub struct TableName {
    schema: Option<String>,
    name: String,
}

impl TableName {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parts = parts(text).unwrap_or_default();
        match <[String; 2]>::try_from(parts) {
            Ok([schema, name]) => Ok(Self {
                schema: Some(schema),
                name,
            }),
            Err(mut parts) if parts.len() == 1 => Ok(Self::bare(&parts.remove(0))),
            Err(_) => Err(format!(
                "`{text}` is not the name of a table: write `name` or `schema.name`, and \
                 what has a dot in it in quotes"
            )),
        }
    }

    /// A name without a schema.
    pub(crate) fn bare(name: &str) -> Self {
        Self {
            schema: None,
            name: name.to_owned(),
        }
    }

    /// Another name in the same schema: on MariaDB an index has none of its own.
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    pub(crate) fn sibling(&self, name: &str) -> Self {
        Self {
            schema: self.schema.clone(),
            name: name.to_owned(),
        }
    }

    pub(crate) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn quoted(&self, quote: char) -> String {
        let doubled = format!("{quote}{quote}");
        let quoted = |part: &String| format!("{quote}{}{quote}", part.replace(quote, &doubled));
        let parts: Vec<_> = self.schema.iter().chain([&self.name]).map(quoted).collect();
        parts.join(".")
    }
}

impl Display for TableName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{schema}.")?;
        }
        f.write_str(&self.name)
    }
}

/// Takes a name apart at its dots, but for those in quotes.
fn parts(text: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let (part, after) = first_part(rest)?;
        parts.push(part);
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None => return after.is_empty().then_some(parts),
        }
    }
}

fn first_part(text: &str) -> Option<(String, &str)> {
    let Some(quote) = text.chars().next().filter(|first| "\"`".contains(*first)) else {
        let (part, after) = text.split_at(text.find('.').unwrap_or(text.len()));
        return (!part.is_empty()).then(|| (part.to_owned(), after));
    };
    let mut part = String::new();
    let mut rest = text.strip_prefix(quote)?;
    loop {
        let (before, after) = rest.split_once(quote)?;
        part += before;
        match after.strip_prefix(quote) {
            Some(next) => {
                part.push(quote);
                rest = next;
            }
            None => return (!part.is_empty()).then_some((part, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TableName;

    #[test]
    fn names_of_tables() {
        for (text, schema, name) in [
            ("notifications", None, "notifications"),
            ("app.Notifications", Some("app"), "Notifications"),
            ("\"odd.name\"", None, "odd.name"),
            (
                "`my app`.\"say \"\"when\"\"\"",
                Some("my app"),
                "say \"when\"",
            ),
            ("a b; --", None, "a b; --"),
        ] {
            let parsed = TableName::parse(text).expect(text);
            assert_eq!((parsed.schema(), parsed.name()), (schema, name), "{text}");
        }
        for text in [
            "", ".", "a.", ".a", "a.b.c", "\"a", "\"\"", "\"a\"b", "\"a\".",
        ] {
            assert!(TableName::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn quotes_in_names_are_doubled() {
        let name = TableName::parse("\"a\"\"b\".`c``d`").expect("it is a name");
        assert_eq!(name.quoted('"'), "\"a\"\"b\".\"c`d\"");
        assert_eq!(name.quoted('`'), "`a\"b`.`c``d`");
    }
}
