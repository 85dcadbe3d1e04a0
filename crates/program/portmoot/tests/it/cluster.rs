//! Several nodes that are one gateway: real processes over real servers of NATS.

mod attempt;
mod callers;
mod changes;
mod deposed;
mod faults;
mod load;
mod lost;
mod nodes;
mod plain;
mod proposals;
mod revoked;
mod ruled;
mod served;
mod takeovers;
