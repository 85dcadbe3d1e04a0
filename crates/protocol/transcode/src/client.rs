//! Clients of proto-mcp: their requests as MCP's JSON of the legacy era, and the answers of servers
//! that speak JSON.

mod block;
mod call;
mod lists;
mod read;
mod result;
mod unreadable;

pub use call::{call_params, is_foreign, is_own, open_params};
pub use lists::{Lookup, Wanted, list_params, resources, tools};
pub use read::{read_params, read_result};
pub use result::{call_result, error};
