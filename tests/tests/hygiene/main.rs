//! The attribute beside other names: those that user code gives to the same
//! things, those that macros make, and other names of the runtime itself.

mod decoys;
mod elsewhere;
mod from_macros;
mod parameters;

use idempotent_tests::delivered;
use idempotent_tests::memory::begin;

#[tokio::test]
async fn decoys() {
    use decoys::{Id, Msg, Service, alias, free};

    let msg = || Msg {
        id: Id(7),
        parent: Some(1),
    };
    let mut tx = begin().await;
    let scope = concat!(module_path!(), "::decoys::free(msg.id,msg.parent)");
    delivered!(tx, scope => "7/1", free(&mut tx, &msg()));
    delivered!(tx, "method" => "7/1/8", Service.method(&mut tx, msg()));
    delivered!(tx, "alias" => "7", alias(&mut tx, 7));
}
