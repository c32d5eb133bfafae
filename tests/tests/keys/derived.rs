//! What `#[derive(KeyPart)]` makes of a type.

use std::marker::PhantomData;
use std::time::SystemTime;

use idempotent_runtime::KeyPart;

use super::{key, text};

/// Names that generated code must not pick up.
#[expect(dead_code, reason = "decoys")]
mod decoys {
    pub(super) struct Option;
    pub(super) struct Some;
    pub(super) struct String;
    pub(super) struct KeyText;
    pub(super) struct KeyWriter;

    pub(super) mod core {}
    pub(super) mod idempotent_runtime {}
}

#[test]
fn a_newtype_has_the_text_of_its_content() {
    #[derive(KeyPart)]
    struct OrderId(u64);

    #[derive(KeyPart)]
    struct Named {
        id: OrderId,
    }

    assert_eq!(text(&OrderId(42)), "42");
    assert_eq!(text(&Named { id: OrderId(42) }), "42");
}

#[test]
fn a_transparent_type_has_the_text_of_the_field_that_counts() {
    /// Not a key part, and need not be one.
    struct Order;

    #[derive(KeyPart)]
    #[key(transparent)]
    struct Id<T> {
        raw: u64,
        of: PhantomData<T>,
    }

    #[derive(KeyPart)]
    #[key(transparent)]
    struct Message {
        #[key]
        id: Id<Order>,
        #[expect(dead_code, reason = "does not count")]
        text: &'static str,
    }

    #[derive(KeyPart)]
    struct Tuple<T>(u64, PhantomData<T>, u8);

    let id = || Id::<Order> {
        raw: 42,
        of: PhantomData,
    };
    assert_eq!(text(&id()), "42");
    let message = Message {
        id: id(),
        text: "paid",
    };
    assert_eq!(text(&message), "42");
    assert_eq!(text(&Tuple::<Order>(1, PhantomData, 2)), "1/2");
}

#[test]
fn marked_fields_count_and_others_do_not() {
    #[derive(KeyPart)]
    struct Message {
        #[key]
        id: u64,
        #[expect(dead_code, reason = "does not count")]
        received: SystemTime,
        #[key(nullable)]
        parent: Option<u64>,
    }

    let message = Message {
        id: 1,
        received: SystemTime::now(),
        parent: None,
    };
    assert_eq!(text(&message), "1/~");
}

#[test]
fn an_argument_is_no_mark_for_the_neighbours() {
    #[derive(KeyPart)]
    struct Message {
        id: u64,
        #[key(nullable)]
        parent: Option<u64>,
    }

    assert_eq!(
        text(&Message {
            id: 1,
            parent: Some(2)
        }),
        "1/2"
    );
}

#[test]
fn marks_count_within_one_variant() {
    #[derive(KeyPart)]
    enum Event {
        Marked(
            #[key] u8,
            #[expect(dead_code, reason = "does not count")] f32,
        ),
        Unmarked(u8, u8),
    }

    assert_eq!(text(&Event::Marked(1, 2.0)), "Marked(1)");
    assert_eq!(text(&Event::Unmarked(1, 2)), "Unmarked(1/2)");
}

#[test]
fn a_variant_is_its_name_and_payload() {
    #[derive(KeyPart)]
    enum Channel {
        Email,
        Braces {},
        Parentheses(),
        Push(u8),
        Sms { number: &'static str, part: u8 },
    }

    assert_eq!(text(&Channel::Email), "Email");
    assert_eq!(text(&Channel::Braces {}), "Braces");
    assert_eq!(text(&Channel::Parentheses()), "Parentheses");
    assert_eq!(text(&Channel::Push(7)), "Push(7)");
    assert_eq!(
        text(&Channel::Sms {
            number: "+66",
            part: 2
        }),
        "Sms(%2B66/2)"
    );
}

#[test]
fn a_name_can_be_kept() {
    #[derive(KeyPart)]
    enum Channel {
        #[key(name = "E-Mail (new)")]
        Email,
        #[key(name = "Email")]
        Other(u8),
    }

    assert_eq!(text(&Channel::Email), "E-Mail%20%28new%29");
    assert_eq!(text(&Channel::Other(1)), "Email(1)");
}

#[test]
fn raw_identifiers_lose_their_prefix() {
    #[derive(KeyPart)]
    #[expect(non_camel_case_types, reason = "keywords are lower-case")]
    enum Word {
        r#type,
        r#fn { r#in: u8 },
    }

    #[derive(KeyPart)]
    #[expect(non_camel_case_types, reason = "keywords are lower-case")]
    struct r#struct {
        r#match: u8,
    }

    assert_eq!(text(&Word::r#type), "type");
    assert_eq!(text(&Word::r#fn { r#in: 1 }), "fn(1)");
    assert_eq!(text(&r#struct { r#match: 1 }), "1");
}

#[test]
fn stable_admits_what_is_refused() {
    #[derive(KeyPart)]
    struct Reading {
        sensor: u32,
        #[key(stable)]
        measured: SystemTime,
        #[key(stable, nullable)]
        value: Option<f64>,
        #[key(stable)]
        #[key(required)]
        rate: Option<f32>,
    }

    let reading = Reading {
        sensor: 1,
        measured: SystemTime::UNIX_EPOCH,
        value: None,
        rate: Some(0.5),
    };
    assert_eq!(text(&reading), "1/1970-01-01T00:00:00.000000000Z/~/0.5");
    assert_eq!(
        key(&Reading {
            rate: None,
            ..reading
        })
        .missing(),
        Some("value")
    );
}

#[test]
fn generic_types_ask_of_their_fields_what_they_need() {
    trait Entity {
        type Id;
    }

    struct Order;

    impl Entity for Order {
        type Id = u64;
    }

    #[derive(KeyPart)]
    struct Reference<'a, E: Entity, const N: usize>
    where
        E::Id: Clone,
    {
        id: E::Id,
        #[key(nullable)]
        parent: Option<E::Id>,
        tag: &'a str,
        hash: [u8; N],
    }

    fn part<T: KeyPart>(part: &T) -> String {
        text(part)
    }

    let reference = Reference::<Order, 2> {
        id: 1,
        parent: Some(2),
        tag: "a b",
        hash: [3, 4],
    };
    assert_eq!(part(&reference), "1/2/a%20b/0304");
}

#[test]
fn a_generic_type_with_a_clock_has_a_text() {
    #[derive(KeyPart)]
    struct Wrapper<T>(T);

    assert_eq!(
        text(&Wrapper(SystemTime::UNIX_EPOCH)),
        "1970-01-01T00:00:00.000000000Z"
    );
}

#[test]
fn recursive_types_have_a_text() {
    #[derive(KeyPart)]
    enum Tree {
        Leaf(u8),
        Node(Box<Self>, Box<Tree>),
    }

    #[derive(KeyPart)]
    enum List<T> {
        End,
        Item(T, Box<List<T>>),
    }

    let leaf = |number| Box::new(Tree::Leaf(number));
    assert_eq!(text(&Tree::Node(leaf(1), leaf(2))), "Node(Leaf(1)/Leaf(2))");
    assert_eq!(text(&List::Item("a", Box::new(List::End))), "Item(a/End)");
}

#[test]
fn types_made_by_a_macro_keep_their_fields_apart() {
    macro_rules! message {
        ($name:ident, $field:ident: $ty:ty) => {
            #[derive(KeyPart)]
            struct $name {
                $field: $ty,
                field_0: u8,
                writer: u8,
            }
        };
    }

    message!(Message, field_1: &'static str);
    assert_eq!(
        text(&Message {
            field_1: "a",
            field_0: 1,
            writer: 2
        }),
        "a/1/2"
    );
}

#[test]
fn shadowed_names_are_not_used() {
    mod inner {
        #[allow(unused_imports, reason = "decoys")]
        use super::decoys::*;

        #[derive(::idempotent_runtime::KeyPart)]
        pub(super) enum Kind {
            Some(#[key(nullable)] ::core::option::Option<u8>),
            None,
        }
    }

    assert_eq!(text(&inner::Kind::Some(None)), "Some(~)");
    assert_eq!(text(&inner::Kind::None), "None");
}

#[test]
fn the_runtime_can_live_elsewhere() {
    mod reexported {
        pub(super) use idempotent_runtime as runtime;
    }

    #[derive(KeyPart)]
    #[key(crate = reexported::runtime)]
    struct Id(u8);

    assert_eq!(text(&Id(1)), "1");
}

#[test]
fn deprecated_fields_do_not_warn() {
    #[derive(KeyPart)]
    enum Channel {
        #[deprecated]
        Fax {
            number: u8,
        },
        Email,
    }

    #[expect(deprecated)]
    let fax = Channel::Fax { number: 1 };
    assert_eq!(text(&fax), "Fax(1)");
    assert_eq!(text(&Channel::Email), "Email");
}
