use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub enum Channel {
    #[key(name)]
    Email,
    #[key(name = push)]
    Push,
}

fn main() {}
