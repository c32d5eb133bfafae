use idempotent_runtime::KeyPart;
use uuid::Uuid;

#[derive(KeyPart, serde::Deserialize)]
pub struct Transfer {
    #[key]
    #[serde(default = "Uuid::new_v4")]
    id: Uuid,
    cents: i64,
}

fn main() {}
