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
mod peer;
mod pty;
mod real;
mod runner;
mod serving;
mod support;
