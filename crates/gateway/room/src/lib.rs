//! Room of a topic: fan-out of admitted envelopes to WebSockets, in one order.
//!
//! The gateway pushes [`RoomEvent`]s into one queue while it holds the topic's lock. One task per
//! room takes what has gathered, encodes every frame once, and writes the same bytes to all
//! members. There is no queue and no task per member; only a socket that lags has a backlog,
//! bounded.
//!
//! Opens no payload. Must not know servers, tokens or files: a house test reads the manifest.

mod batch;
mod event;
mod frame;
mod queue;
mod socket;
mod writer;

pub use event::{Newcomer, RoomEvent, Stamps};
pub use frame::{Close, text};
pub use queue::{ROOM_QUEUE_BYTES_MAX, Room, SENDER_QUEUE_BYTES_MAX};
pub use socket::Socket;
pub use writer::open;
