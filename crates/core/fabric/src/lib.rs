//! Messages and a common log between the nodes of a cluster.
//!
//! An engine is used through two traits, and not trusted with more than they say.
//!
//! - [`Log`]: four operations, of which one decides: an append that a deposed writer cannot make.
//!   [`append_until_known`] tries until the answer is known, [`Replay`] reads up to a record.
//! - [`Bus`]: messages to all who listen, at most once each.
//! - [`Subject`], [`Pattern`]: places of both.
//! - [`Mesh`]: calls and tunnels between two nodes, over a bus. [`ClusterKeys`] seal their frames, and
//!   records of the log.
//! - [`nats`]: log and bus on NATS. `sim`, for tests: both simulated, from a seed.

mod bus;
mod log;
mod mesh;
pub mod nats;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
mod seal;
mod subject;
#[cfg(test)]
mod tests;
mod window;

pub use bus::{
    Bus, BusError, Delivery, Message, Subscription, WAITING_BYTES_MAX, WAITING_MESSAGES_MAX,
};
pub use log::{
    Append, Appended, FRAME_BYTES_MAX, Log, LogError, MessageId, PAGE_BYTES_MAX, PAGE_RECORDS_MAX,
    Page, Pending, Record, Replay, Sequence, TRY_MAX, append_until_known,
};
pub use mesh::{
    ACCEPT_MAX, CHANNELS_MAX, CREDIT_BYTES, Call, CallError, ENDED_CHANNELS_MAX, Incoming,
    MESSAGE_BYTES_MAX, Mesh, MeshCounts, NODE_WAITING_BYTES_MAX, ServedCall, Tunnel,
};
pub use seal::{
    CONTENT_BYTES_MAX, ClusterKeys, ENDED_MAX, FrameOpener, FrameSealer, Incarnation, OpenError,
    Opened, Receiver, SENDERS_MAX,
};
pub use subject::{Pattern, SUBJECT_BYTES_MAX, Subject, SubjectError, token};
pub use window::WINDOW;
