//! Opaque values that a topic keeps for its shell.

use std::{fmt::Debug, sync::Arc};

/// Types of the values that a shell hands to a topic in events and gets back in effects. A topic
/// clones and drops handles and compares tags; it never looks inside, but asks for the bytes of
/// what it keeps. In the simulation they are numbers.
pub trait Handles: Clone + Debug + 'static {
    /// A caller's connection or session.
    type Link: Clone + Debug;
    /// A server.
    type Server: Clone + Debug;
    /// A caller's request: its payload and the way back.
    type Call: Clone + Debug;
    /// A server's question and the way back.
    type Question: Clone + Debug;
    /// The name that a peer gave its request or question, such as a JSON-RPC id. Compared, never
    /// read.
    type Tag: Clone + Eq + Debug;
    /// An answer's payload.
    type Answer: Clone + Debug;
    /// A notification's payload.
    type Notice: Clone + Debug;
    /// A room's message, as its sender wrote it. Cloned for each effect and each reader.
    type Message: Clone + Debug;
    /// A proposal in full, as reviewers see it.
    type Content: Clone + Debug;
    /// A task at a server: the forms in which callers see it, and the session that knows it.
    type Task: Clone + Debug;
    /// The rest of an effect that began with a call and could not wait.
    type Work: Clone + Debug;
    /// The shell's part of a decision: edited params, and the caller that waits until the decision
    /// is on disk.
    type Ruling: Clone + Debug;

    /// Whether two contents are the same request of one participant to the same addressees, however
    /// it is spelled.
    fn is_same_request(one: &Self::Content, other: &Self::Content) -> bool;

    /// The bytes that a proposal that is over keeps of its decision and its answer.
    fn kept_bytes(ruling: Option<&Self::Ruling>, answer: Option<&Self::Answer>) -> usize;

    /// The note for the proposer that goes with an approval, if there is one.
    fn note(_: &Self::Ruling) -> Option<Arc<str>> {
        None
    }

    /// Whether an answer is the result of a call that was carried out and says of no error: the next
    /// step of a plan follows no other.
    fn is_success(answer: &Self::Answer) -> bool;

    /// The bytes of a notification.
    fn notice_bytes(notice: &Self::Notice) -> usize;
}
