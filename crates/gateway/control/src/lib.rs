//! State in force of a gateway, servers, topics, identities and grants, and its changes while calls
//! run.
//!
//! - [`Registry`]: all of it; who may come in ([`Registry::visitor`]), reload and expiry.
//! - [`admin`]: tokens and grants, changed while the gateway runs.
//! - [`Pins`]: what of servers' definitions is trusted, and what is found in them.
//! - [`Bounds`]: the bytes that may wait for a participant.
//! - [`modules`]: schemas of tools as clients of proto-mcp and of the schema registry see them.

pub mod admin;
mod bounds;
mod in_force;
pub mod modules;
mod pins;
mod references;
mod registry;

pub use bounds::{Bounds, STREAM_UNSENT_BYTES_MAX};
pub use in_force::{Concerned, InForce};
pub use pins::{KeptPins, PinRecord, PinnedDefinition, Pins};
pub use registry::{CallerLinks, DRAIN, Registry, RegistryParts, Switch, Visitor};
