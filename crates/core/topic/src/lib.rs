//! The decisions of a topic: membership, admission, routing, audiences, proposals, and the end of
//! every request.
//!
//! A topic keeps the only state of its members, open and parked operations, questions, proposals,
//! servers' tasks and subscriptions; no other crate has a copy. [`Topic::step`] is a pure function of the topic's
//! state, the time and one [`Event`]; its result are [`Effects`]. It uses no clock, randomness,
//! input, output or async: time and ids are arguments, and links, servers, calls and payloads are
//! opaque [`Handles`].
//!
//! # The contract with the shell
//!
//! A topic is driven by a *shell*: the gateway, or a simulation. The shell holds the topic under one
//! lock, and releases it after each step; it may look at the topic under the same lock, and waits
//! for nothing meanwhile. What a step returns is carried out as follows.
//!
//! - *Under the lock*, before the next step: [`Effects::room`] goes into the room's queue, and each
//!   of [`Effects::all`] into the mailbox of its addressee ([`Effect::addressee`]): a call, a link,
//!   or the gateway itself. Nothing is carried out under the lock.
//! - *After the lock is released*, any thread may carry out the effects of a mailbox, but only one at
//!   a time, and in the mailbox's order. So the effects of one addressee take place in the order in
//!   which the topic made them, whichever threads step. Mailboxes have no order between them: where
//!   two addressees must be in order, a step waits for the other's, as [`Event::Written`] does.
//! - A verdict ([`Effects::verdict`]) is recorded by the thread that stepped, before that thread
//!   carries out any of the step's effects. [`Effects::refusal`] is for a sender that waits for it.
//! - Carrying out an effect may step again. What that step gives to a mailbox that is being emptied
//!   waits in it; the shell does not begin a second time with it.
//! - Carrying out never waits. What has to (a session that opens, a file) goes on elsewhere, and comes
//!   back as an event: [`Event::Answer`], [`Event::Propose`], [`Event::Unproposable`],
//!   [`Event::Written`], or [`Event::Proceed`], whose effect the topic makes only if the call is
//!   still open. So no shell needs to note whether a call is over, parked or back.
//! - After [`Effect::Settle`], [`Effect::Refuse`], [`Effect::Drop`], [`Effect::Report`] and, of an
//!   operation that waited, [`Effect::Park`] no effect names the call any more; none names a link
//!   after [`Effect::Closed`]. Between [`Effect::Park`] or [`Effect::Pause`] and [`Effect::Return`] no
//!   effect reaches the caller through its call but an answer, which the shell drops.
//! - The shell may hand events in in any order and from any thread. The topic ignores those that come
//!   too late, twice, or from another than the one that they are asked of.
//!
//! # Access tokens
//!
//! An access token that is good for less than its participant may do narrows what comes with it,
//! and nothing else: the narrowing is a field of [`RequestEvent`], [`Resume`] and [`Say`], and an argument
//! of the queries for one request's answer. So requests with several tokens may be open on one link
//! at once. A task, and a held call, is unknown to a request whose token is not good for its call.
//! What reaches a link without a request (changes of lists, updates of resources, log messages,
//! questions) goes by what its participant may do: each of its requests was admitted with the token
//! that it came with, and a notification only says that something can be read, which takes a request
//! with a token of its own.
//!
//! # Items
//!
//! - [`Event`], [`Effect`], [`RoomEffect`], [`Verdict`]: the whole inventory of events and their
//!   effects.
//! - [`Audience`], [`model::DeliveryMode`], [`Replay`]: the listeners of a room's messages, present
//!   and late.
//! - [`TopicConfig`], [`TopicSettings`], [`Limits`]: the configuration of a topic.
//! - [`section`]: topics as an operator configures them.
//! - [`ServerLists`], [`Listing`]: the lists of servers, and a caller's part of them.
//! - [`ProposalView`]: a proposal as participants may see it.
//! - [`NewTask`]: a server's task, with the participant that has it and the right to it.
//! - [`BuiltinTool`]: the gateway's own tools, and the callers that may use them.
//! - [`public_name`], [`public_uri`], [`check_prefixes`]: names as pure functions of the
//!   configuration.

mod admission;
mod amend;
mod asks;
mod audience;
mod brakes;
mod bucket;
mod catalog;
mod claiming;
mod claims;
mod config;
mod deadlines;
mod decide;
mod departures;
mod diff;
mod direct;
mod effect;
mod event;
mod expiry;
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
mod plan;
mod prefixes;
mod proceeding;
mod proposals;
mod propose;
mod quorum;
mod refusals;
mod replay;
mod request_log;
mod requests;
mod roster;
mod say;
mod scopes;
pub mod section;
mod step;
mod tasks;
mod template;
mod topic;
mod view;

pub use admission::{BuiltinTool, RequestWay, admits_envelope};
pub use amend::AMENDMENTS_MAX;
pub use audience::{Audience, Listener, Reach};
pub use brakes::BRAKES_MAX;
pub use catalog::{Route, UpstreamIndex};
pub use claims::{CLAIM_MS, CLAIMS_MAX, CLAIMS_PER_PARTICIPANT_MAX};
pub use config::{
    AUTHORIZE, GATHER_MS, Limits, PAUSE_MS, TopicConfig, TopicSettings, UPSTREAMS_MAX,
    UpstreamNames,
};
pub use departures::DEPARTURES_MAX;
pub use direct::RequestDestination;
pub use effect::{
    Addressee, AdmittedBy, Cause, Claim, CountedDecision, DECIDERS_SHOWN_MAX, Effect, Effects,
    Ended, HeldFor, Ignored, Mirrored, NotedApproval, ProposalChange, ProposalView, Receiver,
    RefusedDecision, RequestsFate, RoomEffect, Verdict,
};
pub use event::{
    About, Amended, Ask, Brake, Claiming, Configure, CountedApproval, Decision, End, EndedProposal,
    Event, Intent, Interest, Join, Joining, ListScope, Logs, NamedTask, NewTask, OperationRef,
    Parked, PlanPlace, PlanStep, ProposePlan, PublicTarget, RequestEvent, Requested, Restore,
    Resume, RunStep, Say, Seating, SharedLists, Subject, TaskOrigin, TaskRight, Terms, Tightening,
};
pub use expiry::{EXPIRY_WARNING_MS, EXTENSION_MS, PROPOSAL_EXTENSIONS_MAX};
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
pub use plan::{PLAN_STEPS_MAX, PLAN_STEPS_MIN};
pub use prefixes::{PrefixError, check_prefixes};
pub use proposals::{
    CLOSED_PROPOSALS_MAX, ENDED_PROPOSALS_BYTES_MAX, ENDED_PROPOSALS_MAX, REJECTED_PROPOSALS_MAX,
};
pub use quorum::APPROVALS_MAX;
pub use refusals::of_request as request_refusal;
pub use replay::{
    Cursor, DISOWNED_MAX, NoCursor, PlacedMessage, READABLE_MESSAGES_MAX, REPLAY_BYTES_MAX, Replay,
    RingLimits,
};
pub use request_log::REQUESTS_MAX;
pub use roster::{Person, Roster};
pub use step::Now;
pub use tasks::{PARTICIPANT_TASKS_MAX, TOPIC_TASKS_MAX};
pub use topic::{Present, Topic, TopicServer};
pub use view::{ListItem, PerList, Quarantine, Quarantined, ServerLists, Withholding};
