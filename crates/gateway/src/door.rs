//! The doors: where bytes become messages of somebody, and answers become bytes again.

mod answer;
mod body;
mod events;
mod head;
mod held;
pub mod http;
mod mcp;
mod origin;
mod pair;
mod request;
pub mod stdio;
mod ws;

pub use head::bearer;
pub use origin::Hosts;
