use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub struct Msg {
    id: u64,
    at: std::time::SystemTime,
}

fn main() {}
