use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub struct Msg {
    id: Option<u64>,
}

fn main() {}
