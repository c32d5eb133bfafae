use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub struct Msg {
    at: std::time::Instant,
}

fn main() {}
