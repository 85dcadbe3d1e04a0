//! The gateway: everything that waits.
//!
//! Owns the doors (HTTP, stdio), the pump between doors and upstreams, sessions and streams, health and metrics. Must not
//! know HTML, command lines or configuration files.

pub mod api;
pub mod audit;
mod bounds;
mod caller;
pub mod config;
mod desk;
pub mod door;
pub mod gate;
pub mod grants;
mod greeting;
pub mod ground;
pub mod guests;
mod hosted;
mod legacy;
mod lists;
mod modern;
pub mod office;
mod operation;
mod own;
pub mod pump;
mod resume;
pub mod running;
pub mod sealing;
mod sessions;
mod sight;
mod spell;
pub mod stream;
mod tasks;
pub mod tokens;
mod views;
