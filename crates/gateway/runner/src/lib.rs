//! Runner of a cluster's node: the rules of [`cluster::Homes`], carried out over the log, the bus
//! and the disk.
//!
//! The contract between the rules and their runner stands in `cluster`. Here: all steps are taken
//! under one lock, and one task carries out the effects of all steps in their order. Requests to
//! the log run beside it, and their answers are events. What is left to the node's user (the
//! gateway, or a test) goes to its [`HomeUser`], in the same order.
//!
//! - [`Runner`]: a node that runs, until it is stopped or dropped. [`RunnerParts`]: what it is made
//!   of. [`Runner::ended`] says that it is over, also when one of its tasks has failed.
//! - [`HomeUser`], [`UserEffect`]: what its user carries out.
//! - [`ShardLine`]: a line of a journal; its records and all heartbeats are sealed with the cluster's
//!   keys.
//! - [`HeadsFile`]: the places that are known to have been written, on the disk.
//! - [`heartbeats`]: those of all nodes, for a program that is none.
//! - [`NodeClock`]: the clock of the steps; [`MachineClock`] goes on while the machine sleeps.
//!
//! Subjects, below the cluster's: `hb` for heartbeats, `spread` for messages of the common journal,
//! `j`.SHARD.EPOCH for journals.

mod beats;
mod carrier;
mod clock;
mod encoding;
mod heads;
mod journals;
mod line;
mod listening;
mod runner;
mod shared;
#[cfg(test)]
mod tests;
mod user;

pub use beats::{heartbeat, heartbeats};
pub use clock::{MachineClock, NodeClock};
pub use heads::{HEADS_BYTES_MAX, HeadsError, HeadsFile};
pub use line::{LINE_BYTES_MAX, ShardLine};
pub use runner::{LineTooLong, Runner, RunnerError, RunnerParts, TooManyTopics};
pub use shared::EFFECTS_WAITING_MAX;
pub use user::{HomeUser, UserEffect};
