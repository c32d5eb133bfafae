use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub struct Paid {
    order: u64,
    paid_at: i64,
}

#[derive(KeyPart)]
pub struct Shipped {
    #[key]
    order: u64,
    #[key]
    retry_count: u8,
    carrier: String,
}

pub fn used<T: KeyPart>(_: T) {}

pub fn uses(paid: Paid, shipped: Shipped) {
    used(paid);
    used(shipped);
}

fn main() {}
