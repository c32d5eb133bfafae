use idempotent_runtime::KeyPart;

mod my {
    pub type PhantomData = String;
}

#[derive(KeyPart)]
pub struct Msg {
    id: u64,
    channel: my::PhantomData,
}

fn main() {}
