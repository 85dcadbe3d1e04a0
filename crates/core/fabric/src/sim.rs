//! A simulated log and bus: deterministic, from a seed, with the faults of real ones.
//!
//! [`World`] is pure: time and commands go in, answers and messages come out, and the same seed and
//! commands give the same ones. [`Simulated`] drives one by tokio's clock, as a [`crate::Log`] and
//! a [`crate::Bus`] for each node.

mod chance;
mod node;
mod world;

pub use chance::Chance;
pub use node::{Simulated, SimulatedNode};
pub use world::{
    Faults, Happened, LogAnswer, LogCommand, NodeNumber, SubscriptionNumber, Ticket, World,
};
