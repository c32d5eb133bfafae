use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub struct Msg {
    #[key(nullable, required)]
    id: Option<u64>,
}

fn main() {}
