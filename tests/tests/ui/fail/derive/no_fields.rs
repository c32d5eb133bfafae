use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub struct Unit;

#[derive(KeyPart)]
pub struct Braces {}

fn main() {}
