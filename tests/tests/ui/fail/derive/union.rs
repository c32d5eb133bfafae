use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub union Id {
    number: u64,
}

fn main() {}
