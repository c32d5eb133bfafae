//! The text of the four crates: the same handlers, each with another thing in front.

/// How many handlers a crate has.
pub(super) const HANDLERS: u32 = 300;

/// The handler whose literal an edit changes has as many before it as behind it.
const EDITED: u32 = HANDLERS / 2;

/// What stands in for the index of a handler.
const INDEX: &str = "NNN";

const HEAD: &str = "\
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
    pub channel: String,
}

#[derive(Debug)]
pub enum AppError {
    Database(sqlx::Error),
    Idempotency(idempotent_runtime::Error),
}

impl From<sqlx::Error> for AppError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<idempotent_runtime::Error> for AppError {
    fn from(error: idempotent_runtime::Error) -> Self {
        Self::Idempotency(error)
    }
}
";

const OUTCOME: &str = "
#[must_use]
#[derive(Debug)]
pub enum Outcome<T> {
    Processed(T),
    Duplicate,
}
";

const CLAIM: &str = r#"    let key = format!("{}/{}", msg.id, msg.channel);
    let claimed = sqlx::query(
        "INSERT INTO processed_messages (scope, key) VALUES (?, ?) ON CONFLICT DO NOTHING",
    )
    .bind("handler_NNN")
    .bind(key)
    .execute(&mut **tx)
    .await?;
    if claimed.rows_affected() == 0 {
        return Ok(Outcome::Duplicate);
    }
"#;

const BODY: &str = r#"    let balance_NNN: Option<i64> =
        sqlx::query_scalar("SELECT balance FROM accounts_NNN WHERE channel = ? AND id = ?")
            .bind(msg.channel.as_str())
            .bind(msg.id)
            .fetch_optional(&mut **tx)
            .await?;
    let amount = balance_NNN.unwrap_or(LITERAL) + NNN;
    let written_NNN = sqlx::query("UPDATE ledger_NNN SET amount = ?, channel = ? WHERE id = ?")
        .bind(amount)
        .bind(msg.channel.as_str())
        .bind(msg.id)
        .execute(&mut **tx)
        .await?;
"#;

const IDEMPOTENT: &str = "\
#[idempotent_runtime::idempotent(key = \"msg.id, msg.channel\", scope = \"handler_NNN\")]
";

const INSTRUMENT: &str = "\
#[tracing::instrument(skip(tx, msg), fields(id = msg.id))]
";

/// What stands in front of the handlers of a crate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Variant {
    Plain,
    ByHand,
    Idempotent,
    Instrument,
}

/// How a source differs from the one that was generated. The number is another each time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Edit {
    None,
    /// A comment at the end: the same program, and yet to be checked again.
    Comment(u32),
    /// A literal in one handler.
    Literal(u32),
}

impl Variant {
    pub(super) const ALL: [Self; 4] = [
        Self::Plain,
        Self::ByHand,
        Self::Idempotent,
        Self::Instrument,
    ];

    /// The name of the crate.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::ByHand => "by_hand",
            Self::Idempotent => "idempotent",
            Self::Instrument => "instrument",
        }
    }

    /// The whole of `lib.rs`.
    pub(super) fn source(self, edit: Edit) -> String {
        let mut source = String::from(HEAD);
        if self == Self::ByHand {
            source += OUTCOME;
        }
        for index in 0..HANDLERS {
            let literal = match edit {
                Edit::Literal(number) if index == EDITED => 200_000 + number,
                Edit::None | Edit::Comment(_) | Edit::Literal(_) => 100_000 + index,
            };
            let handler = self.handler().replace(INDEX, &index.to_string());
            source += &handler.replace("LITERAL", &literal.to_string());
        }
        if let Edit::Comment(number) = edit {
            source += &["// edit ", &number.to_string(), "\n"].concat();
        }
        source
    }

    fn handler(self) -> String {
        let value = "written_NNN.rows_affected()";
        let (output, claim, value) = match self {
            Self::ByHand => (
                "Outcome<u64>",
                CLAIM,
                format!("Outcome::Processed({value})"),
            ),
            Self::Plain | Self::Idempotent | Self::Instrument => ("u64", "", value.to_owned()),
        };
        format!(
            "\n{}\
             pub async fn handler_NNN(\n    \
                 tx: &mut Transaction<'_, Sqlite>,\n    \
                 msg: &Msg,\n\
             ) -> Result<{output}, AppError> {{\n\
             {claim}{BODY}    Ok({value})\n\
             }}\n",
            self.attribute()
        )
    }

    fn attribute(self) -> &'static str {
        match self {
            Self::Plain | Self::ByHand => "",
            Self::Idempotent => IDEMPOTENT,
            Self::Instrument => INSTRUMENT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANDLER: &str = "pub async fn handler_";

    fn lines_that_differ(one: &str, other: &str) -> Vec<String> {
        let pairs = one.lines().zip(other.lines());
        let differ = pairs.filter(|(one, other)| one != other);
        differ.map(|(_, other)| other.trim().to_owned()).collect()
    }

    #[test]
    fn every_crate_has_all_handlers_and_no_placeholder() {
        for variant in Variant::ALL {
            let source = variant.source(Edit::None);
            assert_eq!(source.matches(HANDLER).count(), 300, "{variant:?}");
            for index in [0, EDITED, HANDLERS - 1] {
                assert!(source.contains(&format!("{HANDLER}{index}(")), "{index}");
            }
            assert!(!source.contains(INDEX), "{variant:?}");
            assert!(!source.contains("LITERAL"), "{variant:?}");
        }
    }

    #[test]
    fn an_attribute_is_all_that_its_crate_adds() {
        let plain = Variant::Plain.source(Edit::None);
        for variant in [Variant::Idempotent, Variant::Instrument] {
            let mut source = variant.source(Edit::None);
            for index in 0..HANDLERS {
                let attribute = variant.attribute().replace(INDEX, &index.to_string());
                source = source.replacen(&attribute, "", 1);
            }
            assert_eq!(source, plain, "{variant:?}");
        }
    }

    #[test]
    fn every_handler_by_hand_claims_in_its_own_scope() {
        let source = Variant::ByHand.source(Edit::None);
        assert_eq!(source.matches("ON CONFLICT DO NOTHING").count(), 300);
        assert_eq!(source.matches(".bind(\"handler_17\")").count(), 1);
    }

    #[test]
    fn a_comment_comes_last_and_changes_nothing_else() {
        let plain = Variant::Plain.source(Edit::None);
        let edited = Variant::Plain.source(Edit::Comment(7));
        assert_eq!(edited.strip_prefix(&plain), Some("// edit 7\n"));
    }

    #[test]
    fn a_literal_changes_in_one_handler_and_keeps_its_length() {
        for variant in Variant::ALL {
            let source = |edit| variant.source(edit);
            let differ = lines_that_differ(&source(Edit::None), &source(Edit::Literal(7)));
            let wanted = ["let amount = balance_150.unwrap_or(200007) + 150;"];
            assert_eq!(differ, wanted, "{variant:?}");
            assert_eq!(
                source(Edit::None).len(),
                source(Edit::Literal(99_999)).len()
            );
        }
    }
}
