//! Params of a request or notification: the members that route it, read in place, and their edits.
//!
//! All other members stay as they were written.

mod edit;
mod read;

pub use edit::ParamsEdit;
pub use read::{Params, Target};

#[cfg(test)]
mod tests;
