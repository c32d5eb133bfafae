use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub struct SystemTime<T> {
    at: std::time::SystemTime,
    by: T,
}

fn main() {}
