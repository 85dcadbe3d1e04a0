//! Clients of proto-mcp 1.0: handshake, requests, answers; whichever way the messages travel.

mod client;
mod framed;
mod hello;
mod outlet;
mod reply;

pub(crate) use framed::serve;
