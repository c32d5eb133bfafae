use idempotent_runtime::KeyPart;

pub struct Foreign;

#[derive(KeyPart)]
pub enum Channel {
    Named { of: Foreign },
    Other(Foreign),
}

fn main() {}
