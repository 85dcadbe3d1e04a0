//! The real binary, from the outside: one test program for all of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod cli;
mod clients;
mod config;
mod conformance;
mod fake;
mod front;
mod real;
mod runner;
