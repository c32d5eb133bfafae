use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub struct Msg {
    #[key(stabel)]
    id: u64,
    #[key(frobnicate)]
    number: u8,
}

pub fn used<T: KeyPart>(_: T) {}

pub fn uses(msg: Msg) {
    used(msg);
}

fn main() {}
