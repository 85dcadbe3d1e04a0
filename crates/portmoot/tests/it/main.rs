//! The real binary, from the outside: one test program for all of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod cli;
mod cli_gateway;
mod clients;
mod config;
mod conformance;
mod docs;
mod fake;
mod first;
mod front;
mod hostile;
mod limits;
mod lossless;
mod peer;
mod pty;
mod real;
mod runner;
mod secrets;
mod serving;
mod socket;
mod upstreams;
