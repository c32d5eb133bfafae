//! Which names are taken for values that change, and which are not.

use super::messages::key;
use crate::key::Instability;

/// A part of each of these is as good as any.
#[test]
fn harmless_names_pass() {
    for name in [
        "msg.at",
        "msg.created_at_version()",
        "msg.data",
        "msg.float_number",
        "msg.format",
        "msg.now_code",
        "msg.order_id",
        "msg.random_seat",
        "msg.status",
        "msg.timestamp_id",
        "msg.updated_by",
        "msg.uuid",
        "msg.delivery_id",
        "msg.request_id",
        "msg.attempted_by",
        "msg.headers[\"x-github-delivery\"]",
        "msg.meta.get(\"timestamp_id\")",
        "msg.now.id",
        "msg.created_at.version",
        "stable(chrono::normal(msg.id))",
    ] {
        assert_eq!(key(name), [""; 0], "{name}");
    }
    for handler in ["chrono: Chrono", "uuid: Uuid", "at: Place, data: Data"] {
        let names: Vec<&str> = handler
            .split(", ")
            .filter_map(|param| param.split(':').next())
            .collect();
        let names = names.join(", ");
        let item = format!(
            "async fn handle(tx: &mut Transaction<'_, Db>, {handler}) -> Result<(), E> {{}}"
        );
        let args = format!("key({names})");
        let expansion = super::expand(args.parse().unwrap(), &item.parse().unwrap());
        assert_eq!(super::errors(expansion), [""; 0], "{names}");
    }
}

#[test]
fn the_last_segment_is_judged_in_every_form() {
    for part in [
        "msg.timestamp",
        "msg.r#timestamp",
        "msg.timestamp()",
        "msg.meta.timestamp",
        "msg.timestamp.to_string()",
        "msg.timestamp.clone().unwrap().as_millis()",
        "msg.timestamp.0",
        "msg.timestamps[0]",
        "msg.meta[\"timestamp\"]",
        "msg.meta.get(\"Timestamp\")",
        "msg.meta[\"x-timestamp\"]",
        "&msg.timestamp",
        "*msg.timestamp",
        "(msg.timestamp)",
        "required(msg.timestamp)",
        "nullable(&msg.timestamp)",
        "msg.timestamp_ms",
        "msg.created_at_ms",
        "msg.sent_at",
    ] {
        let said = key(part);
        assert_eq!(said.len(), 1, "{part}: {said:?}");
        assert!(said[0].contains("is a clock by its name"), "{said:?}");
    }
    for part in [
        "stable(msg.timestamp)",
        "stable(required(msg.sent_at))",
        "stable(msg.attempt), msg.id",
        "stable(msg.offset)",
    ] {
        assert_eq!(key(part), [""; 0], "{part}");
    }
}

#[test]
fn each_family_gives_its_reason() {
    for (name, reason) in [
        ("ts", "a clock"),
        ("attempts", "a retry counter"),
        ("retry_count", "a retry counter"),
        ("redelivered", "a retry counter"),
        ("delivery_tag", "a handle of one delivery"),
        ("receipt_handle", "a handle of one delivery"),
        ("trace_id", "part of a trace"),
        ("nonce", "a random value"),
    ] {
        let fact = format!(
            "`{name}` in the key is {reason} by its name: a redelivery may bring another value, and would run again"
        );
        assert_eq!(key(&format!("msg.{name}")), [fact], "{name}");
    }
}

#[test]
fn an_offset_needs_its_partition() {
    for complete in [
        "msg.partition, msg.offset",
        "msg.offset(), msg.partition()",
        "msg.topic_partition, msg.offset",
        "msg.partition.id, msg.offset",
        "msg.utc_offset",
        "msg.offset_id",
    ] {
        assert_eq!(key(complete), [""; 0], "{complete}");
    }
    for incomplete in ["msg.offset", "msg.topic, msg.offset()", "msg.kafka_offset"] {
        let said = key(incomplete);
        assert_eq!(said.len(), 1, "{incomplete}: {said:?}");
        assert!(said[0].contains("without its partition"), "{said:?}");
    }
    // A part that is not understood may be the partition.
    assert_eq!(key("msg.offset, partition()").len(), 1);
}

/// A name in two families would have two reasons.
#[test]
fn each_name_is_listed_once_and_in_the_form_that_is_compared() {
    let mut seen = std::collections::HashSet::new();
    for name in crate::key::unstable_names() {
        assert!(seen.insert(name), "{name} is listed twice");
        assert!(Instability::of(name).is_some(), "{name} is never met");
        assert!(!name.ends_with("_at"), "{name} has the suffix");
    }
    assert!(seen.contains("timestamp"));
}
