use idempotent_runtime::idempotent;

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(id))]
#[derive(Debug)]
pub struct Handler;

#[idempotent(key(id))]
impl Msg {}

fn main() {}
