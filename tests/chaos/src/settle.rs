//! After the storm: what is left in the queues is posted, then the ledger is audited.

use futures_util::{FutureExt as _, StreamExt as _};
use xtask::chaos::Said;

use crate::audit::audit;
use crate::broker::{Line, pause};
use crate::consume::CHUNK;
use crate::desk::Desk;
use crate::entry::Channel;
use crate::options::Options;
use crate::{Failed, ledger, say};

pub(crate) async fn settle(options: &Options) -> Result<(), Failed> {
    let pool = ledger::pool(options);
    for channel in Channel::ALL {
        let mut desk = Desk::new(options, &pool, channel);
        while let Err(error) = empty(options, &mut desk).await {
            say::trouble(error);
            pause().await;
        }
    }
    let books = ledger::books(&pool).await?;
    say::say(&Said::Audited(audit(&books, options.messages)));
    Ok(())
}

/// Until there is no consumer but us, and no message: then what the killed ones held has come back
/// and is posted.
async fn empty(options: &Options, desk: &mut Desk) -> lapin::Result<()> {
    let line = Line::open(options).await?;
    let deliveries = line.subscribe(options, desk.channel).await?;
    let mut chunks = deliveries.ready_chunks(CHUNK);
    // What was on its way to us at the first look is here at the second.
    let mut looks = 0;
    while looks < 2 {
        if let Some(Some(chunk)) = chunks.next().now_or_never() {
            let chunk: Vec<_> = chunk.into_iter().collect::<Result<_, _>>()?;
            desk.handle(&chunk).await?;
            looks = 0;
            continue;
        }
        let queue = line.look(&options.name, desk.channel).await?;
        // Not less than one, as `RabbitMQ` says when it does not know.
        if (queue.message_count(), queue.consumer_count()) == (0, 1) {
            looks += 1;
        } else {
            looks = 0;
            pause().await;
        }
    }
    Ok(())
}
