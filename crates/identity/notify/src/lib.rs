//! Notifications about proposals that wait for a decision.
//!
//! - [`RoutePlan`]: when one route gets a notification, and about what. It has no clock, no input and
//!   no output.
//! - [`Notification`]: a notification as a program and as a person reads it: names and numbers, never
//!   arguments or words of the proposer.
//! - [`NotifyClient`]: the ways out: a program, or a request over the guarded dialer.
//! - [`config`]: routes as the configuration names them.
//!
//! Nothing here knows a topic, or who may decide.

mod client;
pub mod config;
mod notification;
mod plan;
mod quiet;
mod sign;
#[cfg(test)]
mod tests;

pub use client::{
    NOTIFY_EXEC_LIMIT, NOTIFY_OUTPUT_BYTES_MAX, NOTIFY_TRIES_MAX, NotifyClient, NotifyFault,
    retry_wait,
};
pub use notification::{NOTIFIED_NAME_CHARS_MAX, Notification};
pub use plan::{
    NOTIFY_GAP_MS, NotifyEvent, PlannedNotification, RouteMoment, RoutePlan, RouteStep,
    WaitingProposal,
};
pub use quiet::{QuietError, QuietHours};
pub use sign::{WebhookSecret, WebhookSecretError};
