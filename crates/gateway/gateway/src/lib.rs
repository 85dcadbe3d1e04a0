//! The gateway: what happens in a topic enters as an event, and one interpreter carries out the
//! effects.
//!
//! - [`Dispatch`]: one running topic: [`Dispatch::request`], [`Dispatch::say`]; a link joins it by
//!   [`Dispatch::join`].
//! - [`Link`], [`Outlet`]: a participant's link, and its way out. [`Call`], [`Reply`]: one request,
//!   and its way back.

mod accounts;
mod as_text;
mod awaited;
pub mod brakes;
mod branch;
mod branch_knowledge;
mod builtin;
pub mod by_rule;
mod call;
mod called_tool;
mod callers;
mod client_words;
mod connect;
mod context;
mod curation;
mod delivery;
mod dial_in;
mod dispatch;
mod envelopes;
mod field_numbers;
#[cfg(test)]
mod fixture;
pub mod handshake;
mod hold_times;
mod holds;
mod incoming;
mod judges;
mod ledgers;
mod lifetime;
mod link;
pub mod listen;
mod live;
mod mailbox;
mod mailboxes;
pub mod manifests;
mod membership;
mod mirror;
mod moving;
mod notifications;
mod offer;
mod outside;
mod overhead;
pub mod proposals;
mod questions;
mod record;
mod requests;
mod results;
mod returns;
mod room_message;
mod room_reply;
mod run;
mod sending;
mod server_waits;
mod servers;
mod shadow_acts;
pub mod shadow_sets;
mod skills;
mod slotted;
mod span;
mod starts;
mod tasks;
mod traces;
mod unfit;
mod violations;
mod work;
mod written_act;

pub use awaited::AwaitedCall;
pub use builtin::manifest as built_in_manifest;
pub use call::{Call, Reply};
pub use context::Context;
pub use dispatch::{Dispatch, Settings, StandingOf};
pub use field_numbers::field_numbers;
pub use hold_times::{HoldDurations, HoldTimes};
pub use incoming::{Incoming, Parks, Tag};
pub use ledgers::TopicLedgers;
pub use link::{
    Link, Outlet, Passed, Questioned, Requester, Respell, RoomOutlet, Undelivered, plain_client,
};
pub use live::{ConfiguredServer, ProposalView, Server, Topic, is_plain_result};
pub use notifications::look::AllTopics;
pub use notifications::routes::{NotificationRoutes, RouteCounts};
pub use notifications::runner::notify_reviewers;
pub use offer::{Offer, ResultLimits};
pub use overhead::OverheadTimes;
pub use room_message::{RoomMessage, SentMessage};
pub use servers::Topics;
pub use slotted::SlottedNumber;
pub use span::Traces;
pub use topic::Joining;
