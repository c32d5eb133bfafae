use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub struct Msg {
    tags: std::collections::HashMap<u8, u8>,
}

fn main() {}
