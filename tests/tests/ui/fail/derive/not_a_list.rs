use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub struct Msg {
    #[key = "stable"]
    id: u64,
}

fn main() {}
