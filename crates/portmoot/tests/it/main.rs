//! The real binary, from the outside: one test program for all of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::print_stdout, clippy::type_complexity)]

mod audit;
mod callers;
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
mod http;
mod identity;
mod isolation;
mod limits;
mod lossless;
mod mixed;
mod paging;
mod peer;
mod pty;
mod real;
mod reload;
mod runner;
mod secrets;
mod serving;
mod sessions;
mod slow;
mod socket;
mod streams;
mod support;
mod tls;
mod upstreams;
mod uris;
