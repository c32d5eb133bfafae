use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub struct Msg {
    #[key(stable nullable)]
    id: Option<u64>,
    #[key(1)]
    number: u8,
}

fn main() {}
