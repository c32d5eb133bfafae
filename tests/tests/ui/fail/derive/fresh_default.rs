use idempotent_runtime::KeyPart;
use uuid::Uuid;

#[derive(KeyPart, serde::Deserialize)]
pub struct Paid {
    #[key]
    #[serde(default = "Uuid::new_v4")]
    id: Uuid,
    cents: i64,
}

fn random_number() -> u64 {
    4
}

#[derive(KeyPart, serde::Deserialize)]
pub struct Order(#[serde(default = "random_number")] u64);

fn main() {}
