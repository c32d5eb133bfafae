use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
pub enum Channel {
    Email,
    #[key(name = "Email")]
    Mail,
    r#Push,
    #[key(name = "Push")]
    Notice,
}

fn main() {}
