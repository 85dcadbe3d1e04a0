//! Messages and a common log between the nodes of a cluster.
//!
//! An engine is used through two traits, and not trusted with more than they say.
//!
//! - [`Log`]: four operations, of which one decides: an append that a deposed writer cannot make.
//!   [`append_until_known`] tries until the answer is known, [`LogReplay`] reads up to a record.
//! - [`Bus`]: messages to all who listen, at most once each.
//! - [`SubjectName`], [`SubjectPattern`]: places of both. [`ClusterSubjects`]: those of a cluster.
//! - [`Mesh`]: calls and tunnels between two nodes, over a bus. [`ClusterKeys`] seal their frames,
//!   and records of the log.
//! - [`FeedKept`], [`FeedReader`]: numbered batches for all nodes that follow, none skipped.
//! - [`nats`]: log and bus on NATS. `sim`, for tests: both simulated, from a seed.

mod bus;
mod cluster_subjects;
mod feed;
mod log;
mod mesh;
pub mod nats;
mod seal;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
mod subject;
#[cfg(test)]
mod tests;
mod window;

pub use bus::{
    Bus, BusError, BusMessage, BusSubscription, Delivery, WAITING_BYTES_MAX, WAITING_MESSAGES_MAX,
};
pub use cluster_subjects::ClusterSubjects;
pub use feed::{FEED_BYTES_MAX, FeedGone, FeedKept, FeedPlace, FeedReader, FeedTaken};
pub use log::{
    Append, Appended, FRAME_BYTES_MAX, Log, LogError, LogReplay, MessageId, Ongoing,
    PAGE_BYTES_MAX, PAGE_RECORDS_MAX, Page, Record, Sequence, TRY_MAX, append_until_known,
};
pub use mesh::{
    ACCEPT_MAX, Broadcast, Broadcasts, CHANNELS_MAX, CREDIT_BYTES, ENDED_CHANNELS_MAX,
    MESSAGE_BYTES_MAX, Mesh, MeshCounts, NODE_WAITING_BYTES_MAX, PeerCall, PeerCallError,
    PeerChannel, ServedCall, Tunnel,
};
pub use seal::{
    CONTENT_BYTES_MAX, ClusterKeys, ENDED_MAX, FrameOpener, FrameReceiver, FrameSealer,
    Incarnation, OpenError, Opened, SENDERS_MAX, derived_key,
};
pub use subject::{SUBJECT_BYTES_MAX, SubjectError, SubjectName, SubjectPattern, token};
pub use window::WINDOW;
