//! Messages to all nodes, sealed: heartbeats, batches of feeds.

use std::sync::Arc;

use bytes::Bytes;

use super::shared::Shared;
use crate::bus::{BusMessage, BusSubscription, Delivery};
use crate::seal::Incarnation;
use crate::subject::SubjectName;

/// A message to all nodes, as one of them gets it. It may be lost, and one of a time before this
/// node began may come: the content says of which time it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broadcast {
    /// A message of another node.
    From {
        /// The node.
        sender: Incarnation,
        /// The subject.
        subject: SubjectName,
        /// The content.
        content: Bytes,
    },
    /// At this place so many messages were dropped, because too many waited.
    Dropped(u64),
}

/// Messages of other nodes to all; dropping it ends it.
#[derive(Debug)]
pub struct Broadcasts {
    shared: Arc<Shared>,
    messages: BusSubscription,
}

impl Broadcasts {
    pub(super) fn new(shared: Arc<Shared>, messages: BusSubscription) -> Self {
        Self { shared, messages }
    }

    /// The next message; `None` when the bus has ended.
    pub async fn next(&mut self) -> Option<Broadcast> {
        loop {
            match self.messages.next().await? {
                Delivery::Dropped(number) => return Some(Broadcast::Dropped(number)),
                Delivery::Message(message) => {
                    let opened = self.open(message);
                    if opened.is_some() {
                        return opened;
                    }
                }
            }
        }
    }

    fn open(&self, message: BusMessage) -> Option<Broadcast> {
        let mut state = self.shared.state.lock();
        let opened = state.open(&message.bytes).ok();
        let opened = opened.filter(|opened| opened.is_to_all);
        let content = opened
            .as_ref()
            .and_then(|opened| content_of(&message.subject, &opened.content));
        let (Some(opened), Some(content)) = (opened, content) else {
            state.counts.refused += 1;
            return None;
        };
        let is_own = opened.sender == self.shared.own;
        (!is_own).then_some(Broadcast::From {
            sender: opened.sender,
            subject: message.subject,
            content,
        })
    }
}

/// A content with its subject, so that no one can move it to another one.
pub(super) fn named(subject: &SubjectName, content: &[u8]) -> Vec<u8> {
    let name = subject.as_str().as_bytes();
    let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes(), name, content].concat()
}

/// The content that was sealed for this subject.
fn content_of(subject: &SubjectName, named: &Bytes) -> Option<Bytes> {
    let (length, rest) = named.split_first_chunk::<2>()?;
    let (name, content) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
    (name == subject.as_str().as_bytes()).then(|| named.slice_ref(content))
}
