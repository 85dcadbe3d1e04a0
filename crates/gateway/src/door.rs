//! The doors: where bytes become messages of somebody, and answers become bytes again.

mod answer;
mod body;
mod events;
mod held;
pub mod http;
mod mcp;
mod origin;
mod pair;
mod request;
pub mod stdio;
mod ws;

pub use origin::Hosts;
pub use request::bearer;
