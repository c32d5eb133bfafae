use idempotent_runtime::KeyPart;

type When = std::time::SystemTime;

#[derive(KeyPart)]
pub struct Msg {
    id: u64,
    at: When,
}

fn main() {}
