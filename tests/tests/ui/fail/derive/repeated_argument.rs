use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub struct Msg {
    #[key(stable, stable)]
    id: u64,
    #[key]
    #[key]
    number: u8,
}

fn main() {}
