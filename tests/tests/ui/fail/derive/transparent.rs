use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
#[key(transparent)]
pub struct Money {
    cents: i64,
    currency: String,
}

#[derive(KeyPart)]
#[key(transparent)]
pub enum Channel {
    Email,
    Push,
}

fn main() {}
