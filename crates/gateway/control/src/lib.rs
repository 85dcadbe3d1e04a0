//! State in force of a gateway, servers, topics, identities and grants, and its changes while calls
//! run.
//!
//! - [`Registry`]: all of it; who may come in ([`Registry::visitor`]), reload and expiry.
//! - [`admin`]: tokens and grants, changed while the gateway runs.
//! - [`modules`]: schemas of tools as clients of proto-mcp and of the schema registry see them.

pub mod admin;
mod in_force;
pub mod modules;
mod registry;

pub use in_force::{Concerned, InForce};
pub use registry::{CallerLinks, DRAIN, Registry, Start, Switch, Visitor};
