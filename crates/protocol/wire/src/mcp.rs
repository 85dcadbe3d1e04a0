//! MCP, the Model Context Protocol, in both its eras: revisions, methods, params, results, lists,
//! tasks.

pub mod approval;
mod body;
pub mod code;
pub mod extensions;
pub mod gateways;
pub mod header;
pub mod input;
pub mod large;
pub mod list;
pub mod listen;
pub mod meta;
pub mod method;
pub mod params;
pub mod proxy;
pub mod refusal;
mod rejection;
pub mod relay;
pub mod result;
pub mod search;
pub mod task;
mod translate;
pub mod uris;
pub mod version;
pub use body::BodyEdit;
pub use method::{ListNames, MethodRow, TargetKind};
pub use model::ListKind;
pub use params::Params;
pub use rejection::Rejection;
pub use version::{Era, Version};
