//! The gateway: everything that waits.
//!
//! Owns the doors (HTTP, stdio), the pump between doors and upstreams, sessions and streams, the supervision of
//! upstreams, health and metrics. Must not know HTML, command lines or configuration files.

pub mod config;
mod door;
pub mod sealing;
pub mod stream;
pub mod tokens;
pub mod upstream;
