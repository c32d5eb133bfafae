//! Handlers in other crates: of other editions, and where the runtime has
//! another name or another place.

use super::{begin, delivered};

#[tokio::test]
async fn elsewhere() {
    let mut tx = begin().await;
    delivered!(
        tx,
        "idempotent_fixture_edition_2018::accept(order.id,channel)" => "7/mail",
        idempotent_fixture_edition_2018::accept(&mut tx, &idempotent_fixture_edition_2018::order(7), "mail")
    );
    delivered!(
        tx,
        "idempotent_fixture_edition_2021::accept(order.id,channel)" => "7/mail",
        idempotent_fixture_edition_2021::accept(&mut tx, &idempotent_fixture_edition_2021::order(7), "mail")
    );
    delivered!(tx, "guarded" => "7", idempotent_fixture_edition_2021::guarded(&mut tx, &idempotent_fixture_edition_2021::Locked::default()));
    delivered!(tx, "renamed" => "7/1", idempotent_fixture_renamed::accept(&mut tx, 7, idempotent_fixture_renamed::Order(1)));
    delivered!(tx, "renamed_path" => "7", idempotent_fixture_renamed::quoted(&mut tx, 7));
    delivered!(tx, "company" => "7/1", idempotent_fixture_employee::accept(&mut tx, 7, idempotent_fixture_employee::Order(1)));
    delivered!(tx, "company_macro" => "7", idempotent_fixture_employee::from_macro(&mut tx, 7));
}
