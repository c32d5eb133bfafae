use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub enum Channel {
    Amount(f32),
}

fn main() {}
