//! Tests of the rules from outside: vectors, attacks on rules and learner, properties.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // all of it is a test

mod again;
mod attacks;
mod books;
mod learning;
mod naive;
mod properties;
mod replays;
mod shadows;
mod support;
mod vectors;
