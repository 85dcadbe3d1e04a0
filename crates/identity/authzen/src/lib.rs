//! OpenID AuthZEN as a client: the Access Evaluation API, and its Access Request and Approval
//! Profile (draft 1), by which a denial becomes a request that people or workflows elsewhere decide.
//!
//! - [`AccessQuestion`]: who wants to do what, and the bodies that ask about it.
//! - [`read_evaluation`], [`read_task`]: answers. Whatever is not understood is no permission.
//! - [`AuthzenClient`]: the requests, over the guarded dialer.
//! - [`config`]: how the configuration names such a service.
//!
//! Nothing here knows what a proposal is.

mod answer;
mod client;
pub mod config;
mod fault;
mod members;
mod question;
mod task;
#[cfg(test)]
mod tests;

pub use answer::{AccessAnswer, NextStep, PolicyDenial, RequestableDenial, read_evaluation};
pub use client::{AuthzenClient, POLL_MAX, POLL_MIN, PolledTask};
pub use fault::AuthzenFault;
pub use question::AccessQuestion;
pub use task::{AccessApproval, AccessTask, RequestStatus, read_task};
