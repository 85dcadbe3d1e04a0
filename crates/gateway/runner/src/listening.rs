//! Tasks that hand in what other nodes send to all.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use cluster::HomeEvent;
use fabric::{Broadcast, Broadcasts};

use crate::encoding::{Content, read_beat, read_stored};
use crate::line::ShardLine;
use crate::shared::Shared;

/// The most senders of which a warning names each.
const WARNED_MAX: usize = 64;

/// What is listened to.
pub(crate) struct Incoming<T> {
    pub(crate) beats: T,
    pub(crate) spreads: T,
}

/// The event of a content.
type Read = fn(&Bytes) -> Content<HomeEvent<ShardLine>>;

pub(crate) fn read_beats(content: &Bytes) -> Content<HomeEvent<ShardLine>> {
    read_beat(content).map(|beat| HomeEvent::Beat(Arc::new(beat)))
}

pub(crate) fn read_spreads(content: &Bytes) -> Content<HomeEvent<ShardLine>> {
    read_stored(content).map(HomeEvent::Spread)
}

/// Hands in what comes. What the bus drops comes again, or is read from the log. A sender whose
/// contents cannot be read is named once.
pub(crate) async fn listen(shared: Arc<Shared>, mut messages: Broadcasts, read: Read) {
    let mut warned = HashSet::new();
    while let Some(message) = messages.next().await {
        let Broadcast::From {
            sender, content, ..
        } = message
        else {
            continue;
        };
        let what = match read(&content) {
            Content::Read(event) => {
                shared.step_if_free(event);
                continue;
            }
            Content::Later => "a node of a later version sends what this one cannot read",
            Content::Damaged => "a node sends what makes no sense",
        };
        if warned.len() < WARNED_MAX && warned.insert(sender) {
            tracing::warn!(%sender, "{what}");
        }
    }
    tracing::error!("the bus has ended: this node is without contact");
}
