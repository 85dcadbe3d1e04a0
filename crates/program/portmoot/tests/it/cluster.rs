//! Several nodes that are one gateway: real processes over real servers of NATS.

mod attempt;
mod callers;
mod changes;
mod deposed;
mod faults;
mod lost;
mod nodes;
mod proposals;
mod served;
mod takeovers;
