//! Names of values that change with the clock or with the delivery, however
//! they are typed: an `i64` called `timestamp` is no better than a timestamp.
//!
//! Names are compared as a whole, never in part: `timestamp_id` and `updated_by`
//! are as good as any. Only a unit at the end does not count, so that `ts_ms`
//! is `ts`, nor a leading `x_`, of headers; and what ends in `_at` is a clock.

/// Why a name is refused, which its message says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Instability {
    /// When something happened, or will.
    Clock,
    /// How often something was tried.
    Counter,
    /// What one delivery alone is known by.
    Delivery,
    /// What one attempt is traced by.
    Trace,
    /// What is drawn anew.
    Random,
}

/// The names, by what they stand for.
const NAMES: &[(Instability, &[&str])] = &[
    (
        Instability::Clock,
        &[
            "arrival_time",
            "arrival_timestamp",
            "clock",
            "create_time",
            "created",
            "created_date",
            "created_on",
            "created_time",
            "creation_date",
            "creation_time",
            "creation_timestamp",
            "current_time",
            "date_time",
            "datetime",
            "enqueue_time",
            "enqueued_time",
            "event_time",
            "event_timestamp",
            "event_ts",
            "expiration_time",
            "expiry_time",
            "first_receive_timestamp",
            "ingest_time",
            "ingestion_time",
            "last_modified",
            "last_seen",
            "last_updated",
            "local_time",
            "message_time",
            "message_timestamp",
            "modified",
            "modified_date",
            "modified_on",
            "modified_time",
            "now",
            "process_time",
            "processed_time",
            "processing_time",
            "publish_time",
            "publish_timestamp",
            "published_time",
            "receive_time",
            "receive_timestamp",
            "received_time",
            "received_timestamp",
            "send_time",
            "sent_on",
            "sent_time",
            "sent_timestamp",
            "server_time",
            "system_time",
            "time",
            "time_stamp",
            "timestamp",
            "timestamps",
            "ts",
            "unix_time",
            "unix_timestamp",
            "unix_ts",
            "update_time",
            "updated",
            "updated_date",
            "updated_on",
            "updated_time",
            "wall_clock",
        ],
    ),
    (
        Instability::Counter,
        &[
            "approximate_receive_count",
            "attempt",
            "attempt_count",
            "attempt_no",
            "attempt_num",
            "attempt_number",
            "attempts",
            "attempts_made",
            "attempts_remaining",
            "death",
            "death_count",
            "deliveries",
            "delivery_attempt",
            "delivery_attempts",
            "delivery_count",
            "dequeue_count",
            "failed_attempts",
            "is_redelivered",
            "is_redelivery",
            "is_retry",
            "num_attempts",
            "num_deliveries",
            "num_delivered",
            "num_retries",
            "number_of_attempts",
            "number_of_retries",
            "receive_count",
            "redeliveries",
            "redelivered",
            "redelivery",
            "redelivery_attempt",
            "redelivery_count",
            "remaining_attempts",
            "retries",
            "retries_left",
            "retries_remaining",
            "retry",
            "retry_attempt",
            "retry_attempts",
            "retry_count",
            "retry_num",
            "retry_number",
            "times_delivered",
            "tries",
            "try_count",
        ],
    ),
    (
        Instability::Delivery,
        &[
            "ack_handle",
            "ack_id",
            "ack_token",
            "acknowledgement_id",
            "consumer_seq",
            "consumer_sequence",
            "consumer_tag",
            "delivery_tag",
            "lease_id",
            "lease_token",
            "lock_token",
            "pop_receipt",
            "receipt_handle",
        ],
    ),
    (
        Instability::Trace,
        &[
            "amzn_trace_id",
            "aws_trace_header",
            "b3",
            "baggage",
            "cloud_trace_context",
            "parent_span_id",
            "sentry_trace",
            "span",
            "span_id",
            "trace",
            "trace_context",
            "trace_flags",
            "trace_header",
            "trace_id",
            "trace_parent",
            "trace_state",
            "traceparent",
            "tracestate",
            "uber_trace_id",
            "xray_trace_id",
        ],
    ),
    (
        Instability::Random,
        &[
            "jitter",
            "nonce",
            "rand",
            "random",
            "random_id",
            "random_number",
            "random_uuid",
            "rng",
            "salt",
        ],
    ),
];

/// Places in one partition, which say nothing without it.
const OFFSETS: &[&str] = &["kafka_offset", "offset", "record_offset"];

pub(crate) fn is_offset(name: &str) -> bool {
    OFFSETS.contains(&name)
}

/// Says whether a partition is named, as in `msg.topic_partition`.
pub(crate) fn names_partition(text: &str) -> bool {
    let mut words = text.split(|letter: char| !letter.is_alphanumeric());
    words.any(|word| word == "partition")
}

/// Of a point or a stretch of time; they do not count at the end of a name.
const UNITS: &[&str] = &[
    "_micros", "_millis", "_ms", "_nanos", "_ns", "_sec", "_seconds", "_secs", "_us", "_utc",
];

impl Instability {
    /// Of what is called by this name, without `r#`.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let name = UNITS
            .iter()
            .find_map(|unit| name.strip_suffix(unit))
            .unwrap_or(name);
        let name = name.strip_prefix("x_").unwrap_or(name);
        if name.len() > "_at".len() && name.ends_with("_at") {
            return Some(Self::Clock);
        }
        let mut families = NAMES.iter();
        families.find_map(|(family, names)| names.contains(&name).then_some(*family))
    }
}

/// Every name in the list.
#[cfg(test)]
pub(crate) fn unstable_names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().flat_map(|(_, names)| names.iter().copied())
}
