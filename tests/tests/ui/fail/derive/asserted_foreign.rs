use idempotent_runtime::KeyPart;

pub struct Foreign;

#[derive(KeyPart)]
pub struct Msg {
    #[key(stable)]
    id: Foreign,
}

fn main() {}
