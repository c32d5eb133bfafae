//! Which fields the derive counts, and what it says of those that change.

use super::errors;
use crate::derive::expand;

/// The first lines of what is said of a type.
fn facts(item: &str) -> Vec<String> {
    errors(expand(item.parse().unwrap()))
        .iter()
        .map(|text| text.lines().next().unwrap_or_default().to_owned())
        .collect()
}

const FRESH: &str = "gives a message without";

#[test]
fn a_random_default_is_refused_wherever_a_reader_of_messages_takes_it_from() {
    for item in [
        "struct M { #[serde(default = \"Uuid::new_v4\")] id: Uuid }",
        "struct M { #[serde(rename = \"a,b\", default = \"uuid::Uuid::new_v4\")] id: Uuid }",
        "struct M { #[serde(default = \"random_id\", rename = \"x\")] id: u64 }",
        "struct M { #[serde(default = \"ids::generate_id\")] id: u64 }",
        "struct M { #[serde(default = \"default_timestamp\")] at: i64 }",
        "struct M { #[serde(rename = \"x\", default = \"current_time\")] hour: i64 }",
        "struct M { #[serde(default = \"Ulid::new\")] id: Ulid }",
        "struct M { #[facet(default = Uuid::new_v4())] id: Uuid }",
        "struct M { #[nserde(default = \"generate_id()\")] id: u64 }",
        "struct M { #[serde(default = \"Uuid::new_v4\")] #[key] id: Uuid, text: String }",
        "struct M { #[serde(default = \"Utc::now\")] #[key(stable)] id: DateTime }",
        "struct M(#[serde(default = \"Uuid::new_v4\")] Uuid);",
        "enum M { A { #[serde(default = \"Uuid::new_v4\")] id: Uuid }, B }",
        "#[serde(default = \"M::random\")] struct M { id: u64 }",
        "#[serde(default)] struct M { #[default(Uuid::new_v4())] id: Uuid }",
        "#[serde(default)] struct M { #[default(_code = \"Uuid::new_v4()\")] id: Uuid }",
        "#[serde(default)] struct M { #[educe(Default = Uuid::new_v4())] id: Uuid }",
        "#[serde(rename_all = \"x\", default)] struct M { #[derivative(Default(value = \"Uuid::new_v4()\"))] id: Uuid }",
    ] {
        let said = facts(item);
        assert_eq!(said.len(), 1, "{item}: {said:?}");
        assert!(said[0].contains(FRESH), "{item}: {said:?}");
    }
}

#[test]
fn other_defaults_pass() {
    for item in [
        "struct M { #[serde(default)] id: u64 }",
        "struct M { #[serde(default = \"String::new\")] id: String }",
        "struct M { #[serde(default = \"Uuid::nil\")] id: Uuid }",
        "struct M { #[serde(default = \"email\")] channel: Channel }",
        "struct M { #[serde(rename = \"new_v4\")] id: Uuid }",
        "struct M { #[key] id: u64, #[serde(default = \"Uuid::new_v4\")] session: Uuid }",
        "struct M { #[builder(default = Uuid::new_v4())] id: Uuid }",
        "struct M { #[serde(rename = \"default\", with = \"new_v4\")] id: Uuid }",
        "struct M { #[serde(default = \"new_customer\")] kind: Kind }",
        "struct M { #[serde(default = \"Tier::new_york\")] tier: Tier }",
        "#[serde(default = \"new_order\")] struct M { id: u64 }",
        "#[serde(default)] struct M { #[default(\"now\")] speed: String }",
        "struct M { #[facet(default = \"random\".to_string())] mode: String }",
        "#[serde(rename_all = \"x\")] struct M { #[default(Uuid::new_v4())] id: Uuid }",
        "#[serde(default = \"M::empty\")] struct M { #[default(Uuid::new_v4())] id: Uuid }",
        // Of the producer, who calls `M::default()`, and no reader does.
        "struct M { #[default(Uuid::new_v4())] id: Uuid }",
        "#[serde(default)] struct M { #[default(3)] id: u64 }",
    ] {
        assert_eq!(facts(item), [""; 0], "{item}");
    }
}

#[test]
fn a_field_that_counts_is_judged_by_its_name() {
    for item in [
        "struct M { id: u64, created_at: i64 }",
        "struct M { #[key] id: u64, #[key] attempt: u8 }",
        "struct M { #[key(nullable)] timestamp: Option<i64> }",
        "enum M { A { trace_id: u64 }, B }",
        "struct M { r#nonce: u64 }",
    ] {
        let said = facts(item);
        assert_eq!(said.len(), 1, "{item}: {said:?}");
        assert!(said[0].contains(", by its name,"), "{item}: {said:?}");
    }
    for item in [
        "struct M { #[key] id: u64, created_at: i64 }",
        "struct M { id: u64, #[key(stable)] created_at: i64 }",
        "struct M { timestamp_id: u64 }",
        "enum Timestamp { Now, Random(u8) }",
    ] {
        assert_eq!(facts(item), [""; 0], "{item}");
    }
}

#[test]
fn an_offset_needs_its_partition() {
    assert_eq!(facts("struct M { partition: i32, offset: i64 }"), [""; 0]);
    assert_eq!(facts("struct M { #[key(stable)] offset: i64 }"), [""; 0]);
    for item in [
        "struct M { topic: String, offset: i64 }",
        "struct M { #[key] offset: i64, partition: i32 }",
        "struct M { offset: i64, partition_count: i32 }",
        "enum M { A { offset: i64 }, B }",
    ] {
        let said = facts(item);
        assert_eq!(said.len(), 1, "{item}: {said:?}");
        assert!(said[0].contains("without its partition"), "{said:?}");
    }
}

#[test]
fn transparent_is_for_the_one_field_that_counts() {
    for item in [
        "#[key(transparent)] struct Id(u64);",
        "#[key(transparent)] struct Id { raw: u64 }",
        "#[key(transparent)] struct Id<T>(u64, PhantomData<T>);",
        "#[key(transparent, crate = a::b)] struct M { #[key] id: u64, text: String }",
    ] {
        assert_eq!(facts(item), [""; 0], "{item}");
    }
    for (item, fact) in [
        (
            "#[key(transparent)] struct Id(u64, u8);",
            "`transparent` is for one field, and 2 of `Id` count",
        ),
        (
            "#[key(transparent)] struct Id;",
            "`Id` has no field that counts, so all its values would share one key",
        ),
        (
            "#[key(transparent)] enum Id { A(u64) }",
            "`transparent` is for a struct: an enum's text names the variant",
        ),
        (
            "#[key(transparent = \"x\")] struct Id(u64);",
            "`transparent` takes no value",
        ),
    ] {
        assert_eq!(facts(item), [fact], "{item}");
    }
    for item in [
        "struct Id<T>(u64, (std::marker::PhantomData<T>));",
        "enum M<T> { A(PhantomData<T>), B }",
    ] {
        assert_eq!(facts(item), [""; 0], "{item}");
    }
    assert_eq!(
        facts("struct M { #[key()] id: u64 }"),
        ["`#[key()]` says nothing"]
    );
    // Without it, too, what holds nothing does not count.
    assert_eq!(facts("struct Id<T>(u64, PhantomData<T>);"), [""; 0]);
    let said = facts("struct Id<T>(PhantomData<T>);");
    assert!(said[0].contains("has no field that counts"), "{said:?}");
}
