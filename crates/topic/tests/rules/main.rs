//! The topic's rules, one small story each, through the public interface alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::panic
)] // all of it is a test

mod asks;
mod catalog;
mod cost;
mod holds;
mod limits;
mod membership;
mod proposals;
mod requests;
mod room;
mod serving;
mod stage;
