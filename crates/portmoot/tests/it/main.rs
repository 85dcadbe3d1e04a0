//! The real binary, from the outside: one test program for all of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::print_stdout, clippy::type_complexity)]

mod cli;
mod cli_gateway;
mod clients;
mod config;
mod conformance;
mod docs;
mod fake;
mod first;
mod front;
mod http;
mod identity;
mod isolation;
mod pty;
mod real;
mod reload;
mod runner;
mod serving;
mod sessions;
mod support;
mod streams;
