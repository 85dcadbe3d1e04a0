//! Params of a request or notification: the members that route it, read in place.
//!
//! All other members stay as they were written.

mod read;

pub use read::Params;

#[cfg(test)]
mod tests;
