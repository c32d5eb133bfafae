use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub struct Record {
    topic: String,
    offset: i64,
}

fn main() {}
