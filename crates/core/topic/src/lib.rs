//! The decisions of a topic: membership, admission, routing, audiences, proposals, and the end of
//! every request.
//!
//! A topic keeps the only state of its members, open and parked operations, questions, proposals
//! and subscriptions; no other crate has a copy. [`Topic::step`] is a pure function of the topic's
//! state, the time and one [`Event`]; its result are [`Effects`]. It uses no clock, randomness,
//! input, output or async: time and ids are arguments, and links, servers, calls and payloads are
//! opaque [`Handles`].
//!
//! An access token that is good for less than its participant may do narrows what comes with it,
//! and nothing else: the narrowing is a field of [`Request`], [`Resume`] and [`Say`], and an argument
//! of the queries for one request's answer. So requests with several tokens may be open on one link
//! at once. What reaches a link without a request (changes of lists, updates of resources, log
//! messages, questions) goes by what its participant may do: each of its requests was admitted with
//! the token that it came with, and a notification only says that something can be read, which
//! takes a request with a token of its own.
//!
//! - [`Event`], [`Effect`], [`RoomEffect`], [`Verdict`]: the whole inventory of events and their
//!   effects.
//! - [`Audience`], [`model::DeliveryMode`], [`Replay`]: the listeners of a room's messages, present
//!   and late.
//! - [`TopicConfig`], [`Limits`]: the configuration of a topic.
//! - [`Manifest`], [`Listing`]: the lists of servers, and a caller's part of them.
//! - [`ProposalView`]: a proposal as participants may see it.
//! - [`BuiltinTool`]: the gateway's own tools, and the callers that may use them.
//! - [`public_name`], [`public_uri`], [`check_prefixes`]: names as pure functions of the
//!   configuration.

mod admission;
mod asks;
mod audience;
mod bucket;
mod catalog;
mod config;
mod decide;
mod departures;
mod diff;
mod effect;
mod event;
mod fulfil;
mod handles;
mod interests;
mod lists;
mod members;
mod membership;
mod names;
mod notices;
mod operations;
mod parking;
mod pausing;
mod pending;
mod prefixes;
mod proposals;
mod propose;
mod refusals;
mod replay;
mod request_log;
mod requests;
mod roster;
mod say;
mod scopes;
mod step;
mod template;
mod topic;
mod view;

pub use admission::BuiltinTool;
pub use audience::{Audience, Listener, Reach};
pub use catalog::{Route, UpstreamIndex};
pub use config::{
    AUTHORIZE, GATHER_MS, Limits, PAUSE_MS, TopicConfig, UPSTREAMS_MAX, UpstreamNames,
};
pub use departures::DEPARTURES_MAX;
pub use effect::{
    Cause, DECIDERS_SHOWN_MAX, Effect, Effects, Ended, Ignored, Mirrored, ProposalView, Receiver,
    Record, RefusedDecision, RoomEffect, Rule, Verdict,
};
pub use event::{
    About, Ask, Configure, Decision, End, EndedProposal, Event, Intent, Interest, Join, Joining,
    ListScope, Logs, OperationRef, Parked, Request, Requested, Restore, Resume, Say, Seating,
    SharedLists, Subject, Target, TaskRef, Terms,
};
pub use fulfil::ROOM_ANSWER_MS_MAX;
pub use handles::Handles;
pub use interests::{LISTENS_MAX, SUBSCRIPTIONS_MAX};
pub use lists::{ListSnapshot, Listing};
pub use members::APPS_PER_LINK_MAX;
pub use names::{
    NAME_CHARS_MAX, PREFIX_CHARS_MAX, REWRITTEN, may_be_narrow, narrow_name, public_name,
    public_uri,
};
pub use pausing::{MISSED_BYTES_MAX, MISSED_NOTICES_MAX};
pub use prefixes::{PrefixError, check_prefixes};
pub use proposals::{
    CLOSED_PROPOSALS_MAX, ENDED_PROPOSALS_BYTES_MAX, ENDED_PROPOSALS_MAX, REJECTED_PROPOSALS_MAX,
};
pub use refusals::of_request as request_refusal;
pub use replay::{
    Cursor, DISOWNED_MAX, NoCursor, READABLE_MESSAGES_MAX, REPLAY_BYTES_MAX, Replay, RingLimits,
};
pub use request_log::REQUESTS_MAX;
pub use roster::{Person, Roster};
pub use step::Now;
pub use topic::{Present, Server, Topic};
pub use view::{ListItem, Manifest, PerList, Quarantine, Quarantined, Withholding};
