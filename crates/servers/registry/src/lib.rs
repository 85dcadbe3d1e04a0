//! Schema registry: the modules of the gateway's servers as the `buf` CLI reads them, and
//! references that other registries resolve.
//!
//! - [`Shelf::answer`]: the RPCs of the gateway's own registry, from request bytes to answer bytes.
//! - [`resolve::Resolver`]: a reference to the bytes of its descriptor set.
//! - [`messages`]: the messages of those RPCs.

mod commit;
pub mod connect;
mod digest;
pub mod messages;
pub mod resolve;
mod serve;
mod set;
mod shelf;
mod tools;

pub use commit::{Commit, Files};
pub use connect::{Code, ConnectError};
pub use serve::{METHODS, OWNER};
pub use shelf::{COMMITS_MAX, ModuleSource, SHELF_BYTES_MAX, Shelf, Viewer};
pub use tools::{files_of, module_name};

#[cfg(test)]
mod tests;
