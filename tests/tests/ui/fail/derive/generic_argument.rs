use idempotent_runtime::KeyPart;

pub struct Foreign;

#[derive(KeyPart)]
pub struct Wrapped<T>(T);

pub fn used<T: KeyPart>(_: T) {}

pub fn uses(at: std::time::SystemTime) {
    used(Wrapped(Foreign));
    used(Wrapped(at));
}

fn main() {}
