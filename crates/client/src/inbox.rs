//! The owner of a link, as the link's tasks see it.

use bytes::Bytes;

use crate::error::LinkError;

/// What the inbox made of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The request on whose stream the message arrived is still open; more may follow.
    Open,
    /// That request has its answer, or its caller gave up. The link stops reading its stream.
    Settled,
    /// It was not a message, or not one for anyone here. A link may slow down a peer that sends many of these.
    Noise,
}

/// Receives what arrives on a link.
///
/// The link's own tasks call these functions, which must not block.
pub trait Inbox: Send + Sync + 'static {
    /// One JSON-RPC message arrived. `about` is the request on whose HTTP stream it arrived.
    fn frame(&self, frame: Bytes, about: Option<u64>) -> Flow;
    /// This request has no answer and will not get one.
    fn failed(&self, request: u64, error: LinkError);
    /// The link has ended. Called once, after the last message.
    fn closed(&self, why: LinkError);
    /// A message longer than the limit was skipped; `head` is its beginning.
    fn skipped(&self, head: &[u8]) {
        let _ = head;
    }
}
