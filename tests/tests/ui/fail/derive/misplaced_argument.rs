use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
#[key(stable)]
pub struct Msg {
    id: u64,
}

#[derive(KeyPart)]
pub enum Channel {
    #[key(nullable)]
    Email,
}

fn main() {}
