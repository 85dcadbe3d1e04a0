//! The decisions of a topic: who is in it, what is admitted, where it goes, and how it ends.
//!
//! [`Topic::step`] is a pure function of a topic's state, the time and one [`Event`]; what follows from it
//! are [`Effect`]s, in one order for all. No clock, no randomness, no input or output, no async: time and
//! ids are arguments. This crate knows no JSON-RPC, no HTTP and no files, and opens no payload.
//!
//! - [`Event`], [`Effect`]: the whole inventory of what can happen and what can follow.
//! - [`Ear`]: what a link hears of the room.
//! - [`TopicConfig`], [`Limits`]: what is fixed by configuration.
//! - [`Manifest`], [`ListKind`], [`Listing`]: what upstreams have and what a caller sees of it.
//! - [`BuiltinTool`]: the gateway's own tools, and whom they are for.
//! - [`public_name`], [`public_uri`], [`check_prefixes`]: names as pure functions of the configuration.

mod admission;
mod asks;
mod builtin;
mod catalog;
mod config;
mod decide;
mod diff;
mod ear;
mod effect;
mod event;
mod execute;
mod hold;
mod idmap;
mod lists;
mod manifest;
mod members;
mod membership;
mod names;
mod operations;
mod pending;
mod proposals;
mod propose;
mod rate;
mod refusals;
mod requests;
mod say;
mod step;
mod template;
mod topic;
mod view;
mod views;

pub use builtin::BuiltinTool;
pub use catalog::{Route, UpstreamIndex};
pub use config::{Limits, TopicConfig, UPSTREAMS_MAX, UpstreamNames};
pub use ear::Ear;
pub use effect::{Cause, Effect, Effects, End, Record};
pub use event::{About, Decision, Event, Role, Target, Terms, View};
pub use lists::Listing;
pub use manifest::{Item, ListKind, Manifest};
pub use names::{
    NAME_CHARS_MAX, PREFIX_CHARS_MAX, PrefixError, REWRITTEN, check_prefixes, public_name, public_uri,
};
pub use pending::Proposed;
pub use rate::RateLimit;
pub use topic::{Present, Topic};
pub use view::{Quarantine, Quarantined};
