//! Every place at which a wire can be cut.

use idempotent_tests::is_full;
use idempotent_tests::wire::{Cut, End, Place, Seen, Sender};

/// Makes an attempt without a cut, and then one with each, up to the first that
/// finds no message to be cut at; returns how often it was cut.
pub(super) async fn every_cut(
    end: End,
    mut attempt: impl AsyncFnMut(Option<Cut>) -> Seen,
) -> usize {
    let uncut = attempt(None).await;
    let mut cuts = 0;
    for sender in Sender::ALL {
        for &place in places() {
            for number in 1.. {
                let cut = Cut {
                    sender,
                    number,
                    place,
                    end,
                };
                if attempt(Some(cut)).await.cut_at.is_none() {
                    let messages = uncut.of(sender);
                    assert!(
                        number > messages,
                        "{cut:?}: skipped, of {messages} messages"
                    );
                    break;
                }
                cuts += 1;
            }
        }
    }
    cuts
}

fn places() -> &'static [Place] {
    if is_full() {
        &[Place::Before, Place::Inside, Place::After]
    } else {
        &[Place::Before, Place::After]
    }
}
