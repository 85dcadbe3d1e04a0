//! Rules of the topic, one short scenario each, through the public interface alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::panic
)] // all of it is a test

mod amend;
mod apps;
mod asks;
mod audience;
mod away;
mod braked;
mod branches;
mod cancelling;
mod catalog;
mod changes;
mod claims;
mod clocks;
mod closed;
mod cost;
mod deciding;
mod described;
mod disowned;
mod early;
mod envelope;
mod expiry;
mod fulfilments;
mod holds;
mod ids;
mod interests;
mod limits;
mod listens;
mod log;
mod membership;
mod mirrors;
mod narrowing;
mod notices;
mod numbers;
mod own;
mod parked;
mod pausing;
mod plan;
mod private;
mod proceeding;
mod proposals;
mod quorum;
mod recall;
mod rejections;
mod repeated;
mod replay;
mod requests;
mod restored;
mod room;
mod serving;
mod shown;
mod stage;
mod stopping;
mod tasks;
mod tightened;
