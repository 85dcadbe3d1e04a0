//! Servers that read protobuf: their lists, calls, results and errors for callers that read JSON.
//!
//! | module | contents |
//! |---|---|
//! | [`handshake`] | `initialize` and its answer |
//! | [`tools`], [`resources`] | pages of lists; contents of resources |
//! | [`schemas`] | what came with the tools: their messages |
//! | [`call`] | calls and their arguments |
//! | [`result`] | results of calls |
//! | [`error`] | errors of both kinds |

pub mod call;
mod data;
pub mod error;
pub mod handshake;
mod items;
pub mod resources;
pub mod result;
pub mod schemas;
pub mod tools;
mod value;
