use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub struct Msg {
    #[key()]
    id: u64,
}

fn main() {}
