//! Clients of proto-mcp 1.0: handshake, requests, answers; whichever way the messages travel.

mod client;
mod framed;
mod hello;
mod outlet;
mod reply;
mod session;

pub(crate) use client::{Client, Disposition};
pub(crate) use framed::serve;
pub(crate) use hello::Declared;
pub(crate) use reply::{Schemas, field_of};
pub(crate) use session::{ProtoArrival, Session};
