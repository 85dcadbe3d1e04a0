//! Messages and a common log between the nodes of a cluster.
//!
//! An engine is used through two traits, and not trusted with more than they say.
//!
//! - [`Log`]: four operations, of which one decides: an append that a deposed writer cannot make.
//!   [`append_until_known`] tries until the answer is known, [`Replay`] reads up to a record.
//! - [`Bus`]: messages to all who listen, at most once each.
//! - [`Subject`], [`Pattern`]: places of both.
//! - [`nats`]: both on NATS. `sim`, for tests: both simulated, from a seed.

mod bus;
mod log;
pub mod nats;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
mod subject;
#[cfg(test)]
mod tests;

pub use bus::{
    Bus, BusError, Delivery, Message, Subscription, WAITING_BYTES_MAX, WAITING_MESSAGES_MAX,
};
pub use log::{
    Append, Appended, FRAME_BYTES_MAX, Log, LogError, MessageId, PAGE_BYTES_MAX, PAGE_RECORDS_MAX,
    Page, Pending, Record, Replay, Sequence, TRY_MAX, append_until_known,
};
pub use subject::{Pattern, SUBJECT_BYTES_MAX, Subject, SubjectError, token};
