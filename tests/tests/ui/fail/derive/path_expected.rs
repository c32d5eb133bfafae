use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
#[key(crate = "idempotent")]
pub struct Msg {
    id: u64,
}

fn main() {}
