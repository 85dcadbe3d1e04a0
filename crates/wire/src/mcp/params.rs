//! The params of a request or notification: the members that route it, read once where they lie, and their edits.
//!
//! All other members stay as they were written. It must not know headers, results or the gateway's names.

mod edit;
mod read;

pub use edit::ParamsEdit;
pub use read::{Params, Target};

#[cfg(test)]
mod tests;
