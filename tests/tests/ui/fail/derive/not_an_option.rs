use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub struct Msg {
    #[key(nullable)]
    id: u8,
}

fn main() {}
