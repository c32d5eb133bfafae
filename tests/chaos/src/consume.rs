//! A consumer: both queues, for ever.

use futures_util::StreamExt as _;

use crate::broker::{Line, pause};
use crate::desk::Desk;
use crate::entry::Channel;
use crate::options::Options;
use crate::{ledger, say};

/// How many deliveries are handled at once, at most.
pub(crate) const CHUNK: usize = 16;

pub(crate) async fn consume(options: &Options) {
    let pool = ledger::pool(options);
    let [email, push] = Channel::ALL.map(|channel| Desk::new(options, &pool, channel));
    tokio::join!(serve(options, email), serve(options, push));
}

/// Handles what comes, and connects again when the broker is gone.
async fn serve(options: &Options, mut desk: Desk) {
    loop {
        if let Err(error) = session(options, &mut desk).await {
            say::trouble(error);
        }
        pause().await;
    }
}

async fn session(options: &Options, desk: &mut Desk) -> lapin::Result<()> {
    let line = Line::open(options).await?;
    let deliveries = line.subscribe(options, desk.channel).await?;
    let mut chunks = deliveries.ready_chunks(CHUNK);
    while let Some(chunk) = chunks.next().await {
        let chunk: Vec<_> = chunk.into_iter().collect::<Result<_, _>>()?;
        desk.handle(&chunk).await?;
    }
    Ok(())
}
