use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
#[key]
pub struct Msg {
    id: u64,
}

#[derive(KeyPart)]
pub enum Channel {
    #[key]
    Email(u8),
}

fn main() {}
