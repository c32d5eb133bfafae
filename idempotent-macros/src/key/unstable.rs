//! Names of values that change with the clock or with the delivery, however
//! they are typed: an `i64` called `timestamp` is no better than a timestamp.
//!
//! Names are compared as a whole, or by their last words: `sent_at` is a clock,
//! and `timestamp_id` and `updated_by` are as good as any. A unit at the end does
//! not count, so that `ts_ms` is `ts`, nor a leading `x_`, of headers.

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

/// The names, by what they stand for; one that begins with `_` is the end of a
/// longer one. Measured on names of public schemas, in `tests/names`: what may
/// stand in a key has none of these ends.
const NAMES: &[(Instability, &[&str])] = &[
    (
        Instability::Clock,
        &[
            "_at",
            "_datetime",
            "_time",
            "_time_stamp",
            "_timestamp",
            "_ts",
            "_tstamp",
            "clock",
            "completed_on",
            "created",
            "created_date",
            "created_on",
            "creation_date",
            "date_completed",
            "date_created",
            "date_generated",
            "date_modified",
            "date_paid",
            "date_received",
            "date_sent",
            "date_updated",
            "datetime",
            "event_created",
            "event_ingested",
            "expires",
            "expires_on",
            "finished_on",
            "iat",
            "inserted_on",
            "last_heartbeat",
            "last_modified",
            "last_seen",
            "last_updated",
            "modified",
            "modified_date",
            "modified_on",
            "now",
            "processed_on",
            "received",
            "received_on",
            "sent_on",
            "started_on",
            "time",
            "time_closed",
            "time_completed",
            "time_created",
            "time_left",
            "time_posted",
            "time_processed",
            "time_sent",
            "time_stamp",
            "timestamp",
            "timestamp_created",
            "timestamps",
            "ts",
            "tstamp",
            "unixtime",
            "updated",
            "updated_date",
            "updated_on",
            "wall_clock",
        ],
    ),
    (
        Instability::Counter,
        &[
            "_attempt_count",
            "_attempt_number",
            "_attempts",
            "_delivery_attempt",
            "_delivery_count",
            "_redelivered",
            "_redelivery_count",
            "_resend_count",
            "_retried",
            "_retries",
            "_retry",
            "_retry_count",
            "_retry_num",
            "_retry_number",
            "_try_count",
            "approximate_receive_count",
            "attempt",
            "attempt_count",
            "attempt_no",
            "attempt_num",
            "attempt_number",
            "attempts",
            "attempts_made",
            "attempts_remaining",
            "attempts_started",
            "backout_count",
            "consecutive_failures",
            "death_count",
            "x_death",
            "delivery_attempt",
            "delivery_count",
            "dequeue_count",
            "dispatch_count",
            "execution_count",
            "fail_count",
            "failure_count",
            "is_redelivery",
            "job_try",
            "num_delivered",
            "num_deliveries",
            "num_trials",
            "poss_dup_flag",
            "poss_resend",
            "receive_count",
            "reconsume_times",
            "redelivered",
            "redeliveries",
            "redelivery",
            "redelivery_attempt",
            "redelivery_count",
            "redelivery_counter",
            "resend_count",
            "reserved_count",
            "retried",
            "retries",
            "retries_count",
            "retries_left",
            "retries_remaining",
            "retry",
            "retry_attempt",
            "retry_count",
            "retry_num",
            "retry_number",
            "retry_reason",
            "times_delivered",
            "tries",
            "try_count",
        ],
    ),
    (
        Instability::Delivery,
        &[
            "_ack_id",
            "_delivery_tag",
            "_lock_token",
            "_receipt_handle",
            "ack_handle",
            "ack_id",
            "ack_ids",
            "ack_token",
            "acknowledgement_id",
            "consumer_seq",
            "consumer_sequence",
            "consumer_tag",
            "delivery_tag",
            "lease_token",
            "lock_token",
            "lock_tokens",
            "pop_receipt",
            "receipt_handle",
            "task_token",
        ],
    ),
    (
        Instability::Trace,
        &[
            "_sampled",
            "_span_context",
            "_span_id",
            "_traceparent",
            "_tracestate",
            "amzn_trace_id",
            "aws_trace_header",
            "b3",
            "b3_flags",
            "b3_trace_id",
            "cloud_trace_context",
            "datadog_parent_id",
            "datadog_trace_id",
            "lambda_runtime_trace_id",
            "span_context",
            "span_ctx",
            "span_id",
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
            "_nonce",
            "jitter",
            "nonce",
            "nonce_str",
            "rand",
            "random",
            "random_id",
            "random_number",
            "random_uuid",
            "rng",
        ],
    ),
];

/// Places in one partition, which say nothing without it.
const OFFSETS: &[&str] = &[
    "get_offset",
    "kafka_offset",
    "message_offset",
    "offset",
    "record_offset",
];

pub(crate) fn is_offset(name: &str) -> bool {
    OFFSETS.contains(&&*snake_case(name))
}

/// Says whether a partition is named, as in `msg.topic_partition`.
pub(crate) fn names_partition(text: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut names = text.split(|letter| !is_part(letter)).map(snake_case);
    names.any(|name| {
        let name = name.strip_suffix("_id").unwrap_or(&name);
        let name = name.strip_suffix("_index").unwrap_or(name);
        let name = name.strip_suffix("_number").unwrap_or(name);
        name == "partition" || name.ends_with("_partition")
    })
}

/// Of a point or a stretch of time; they do not count at the end of a name.
const UNITS: &[&str] = &[
    "_epoch",
    "_opt",
    "_unix_nano",
    "_micros",
    "_millis",
    "_ms",
    "_nano",
    "_nanos",
    "_ns",
    "_sec",
    "_seconds",
    "_secs",
    "_us",
    "_usec",
    "_utc",
];

impl Instability {
    /// Of what is called by this name: of a field, a method, or a header.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let name = snake_case(name);
        let mut name = name.as_str();
        while let Some(shorter) = UNITS.iter().find_map(|unit| name.strip_suffix(unit)) {
            name = shorter;
        }
        let bare = name.strip_prefix("x_").unwrap_or(name);
        let is_like = |known: &&str| {
            let is_longer = bare.len() > known.len();
            [name, bare].contains(known)
                || is_longer && known.starts_with('_') && bare.ends_with(known)
        };
        let mut families = NAMES.iter();
        families.find_map(|(family, names)| names.iter().any(is_like).then_some(*family))
    }
}

/// `ApproximateReceiveCount` and `x-retry-count`, as a field would be named.
fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    let (mut before, mut rest) = (None::<char>, letters.iter().skip(1));
    for letter in &letters {
        let after = rest.next();
        let starts_word = letter.is_uppercase()
            && before.is_some_and(|before| {
                let ends_acronym = after.is_some_and(|after| after.is_lowercase());
                before.is_lowercase()
                    || before.is_numeric()
                    || before.is_uppercase() && ends_acronym
            });
        if starts_word {
            snake.push('_');
        }
        let is_part = letter.is_alphanumeric();
        snake.push(if is_part {
            letter.to_ascii_lowercase()
        } else {
            '_'
        });
        before = Some(*letter);
    }
    snake
}

/// Every name in the list.
#[cfg(test)]
pub(crate) fn unstable_names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().flat_map(|(_, names)| names.iter().copied())
}
