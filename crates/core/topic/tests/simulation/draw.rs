//! Drawn events, one file per subject, each with the effects that must follow.

mod answers;
mod asks;
mod brakes;
mod claims;
mod envelopes;
mod fulfilments;
mod held;
mod journal;
mod lists;
mod notices;
mod participants;
mod pauses;
mod proposals;
mod requests;
mod restart;
mod room;
mod scenarios;
mod servers;
pub(crate) mod tasks;
mod waits;
