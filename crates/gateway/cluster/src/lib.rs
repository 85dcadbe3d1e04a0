//! Homes of topics among several nodes: membership, take-over, fences, the barrier, admission.
//!
//! Several nodes serve the same topics under one set of rules. What is shared of a topic, and what
//! all nodes must agree on (members, tokens, grants), is a [`Shard`], which has one *home* at a
//! time. The log is the authority about that, not a lease: each epoch of a home appends to a
//! subject of its own, a successor first ends that subject with one compare-and-set append
//! ([`HomeRecord::Fenced`]) and reads afterwards, as BookKeeper's recovery and Kafka's leader
//! epochs do. A home that was cut off, or stopped for a while, can then append nothing, so it can
//! open, decide and begin nothing. Clocks decide only who tries, and until when a node without
//! contact goes on.
//!
//! [`Homes::step`] is a pure function of the node's state, the time and one [`HomeEvent`]; its
//! result are [`HomeEffect`]s. It uses no clock, chance, input, output or async. Records are opaque
//! ([`HomeLine`]) but for what the rules here are about.
//!
//! # The contract with the runner
//!
//! A node has one `Homes`, driven by a *runner*: the gateway, or a simulation.
//!
//! - The runner hands events in one after the other, in any order between them. Events that are
//!   late, doubled or of a former life change nothing. It sends [`HomeEvent::Tick`] at least each
//!   [`TICK_MS`], and [`NodeTime::steady_ms`] also goes on while the machine sleeps.
//! - It carries out the effects of all steps in one order. A process may end between any two: so
//!   [`HomeEffect::KeepHead`] comes before what was acknowledged takes place, and
//!   [`HomeEffect::Apply`] before the heartbeat that says so.
//! - An append is repeated with the same [`AppendId`] until its result is known: an unknown result
//!   is never "not stored". The log compares the last sequence of the subject, and takes an id that
//!   it has stored for stored, whatever is expected. [`AppendResult::Refused`] says which one is
//!   last.
//! - Reads may come from any replica, and may lag: none decides anything. What a read has of a
//!   shard is a beginning of its journal, without gaps, in the log's order. An answer that carries
//!   the number of a question is of a reading that began after that was asked first. A record that
//!   is not the cluster's is in no answer, but an append behind it expects it
//!   ([`LastMessage::sequence`]); one that a later version wrote leaves the question unanswered.
//! - Nothing takes place before it is durable: the runner answers its callers after
//!   [`HomeEffect::Stored`], and says of an access change that it is in force after
//!   [`HomeEffect::Confirmed`]. After [`HomeEffect::StepDown`] and [`HomeEffect::StopTopic`] it
//!   drops the shard's state and has no answer for the tickets that are open: their lines may be
//!   stored.
//! - The runner asks [`Admission::admits`] with the clock of the moment for each request; it does
//!   not remember the answer. So a process that was stopped admits nothing when it goes on.
//! - A refresh token is used between [`HomeEffect::Renew`] and its `before_ms`, or not at all: the
//!   runner looks at the clock before it sends, and gives the request that much time. Its result is
//!   handed in at the home of the common journal as [`HomeEvent::Renewed`], with the number of the
//!   flight, until it is answered by [`HomeEffect::RenewalOver`]: a home that takes it no more gives
//!   it back with [`HomeEffect::NotRenewed`]. A result that comes twice is stored once by a home.
//! - Frames and records are authentic: one who can forge a heartbeat is not kept out here.
//!
//! # Contact
//!
//! A node admits requests for [`HomesConfig::cut_off_ms`] after its latest *contact* with the home
//! of the common journal, or with a majority. Contact is counted from when this node *sent* the
//! heartbeat that the other one echoes, so that old heartbeats (in the buffers of a process that
//! was stopped) are none; it counts once this node has applied all that the other one had then, and
//! if the other one was as new as a home in its life. So a node that is behind refuses nothing
//! while it catches up, and still cannot go on without what was confirmed: see `barrier`.
//!
//! # Losses
//!
//! The log may lose what it acknowledged. Messages are chained, heartbeats carry the highest places
//! that nodes know of, and each node keeps them on its disk. A journal that does not contain such a
//! place is stopped ([`HomeEffect::StopTopic`]) until a person has looked ([`HomeEvent::Accept`]),
//! and the stop itself is a record. A loss is noticed by the next append, at the next take-over, or
//! when a node that knows of it is back; until then a successor that knows nothing of it goes on.
//!
//! # Snapshots
//!
//! A journal does not grow for ever. A home that is given what is in force
//! ([`HomeEvent::Compact`]) appends [`HomeRecord::Kept`], which has what else the messages before it
//! say, and then the lines. Once the last of them is durable the snapshot is whole, and the home
//! has the log remove what is before ([`HomeEffect::Purge`]); each home does so anew at its
//! beginning, so that nothing depends on an answer. Readers begin at a snapshot that is whole, all
//! at once, if they have nothing or if messages before it are missing; any other gap is a loss. So
//! a purge that was made in part, or is seen at some replicas alone, takes nothing from a reader.
//!
//! - A purge is below the first message of a whole snapshot. Messages of later homes have greater
//!   sequences, so a purge that comes late, of a home that is deposed, removes nothing else. The
//!   runner looks first whether the snapshot's last message is still in its place, and whether its
//!   home's epoch is the latest: a log that was set back has other messages under these sequences,
//!   and may have lost the end of an epoch.
//! - The subject of a former epoch may become empty by it, so that an append which comes late is
//!   not refused for the message that ended the epoch. A home whose subject is empty steps down:
//!   whether that was a purge or a loss, the next take-over tells, from the places that are known.
//!   A beginning of such an epoch that comes late is behind all that follows it, and is passed over.
//! - A snapshot has the beginnings of the latest [`EPOCHS_KEPT_MAX`] epochs, so that places which
//!   nodes know are compared as before.
//!
//! # Items
//!
//! - [`Homes`], [`HomesConfig`]: a node.
//! - [`HomeEvent`], [`HomeEffect`]: the whole inventory of events and effects.
//! - [`Heartbeat`]: what nodes say of themselves.
//! - [`HomeRecord`], [`HomeMessage`], [`JournalHead`]: journals and their chain.

mod admitting;
mod appending;
mod barrier;
mod beats;
mod common;
mod compacting;
mod effect;
mod event;
mod following;
mod heartbeat;
mod history;
mod home;
mod homes;
mod lease;
mod members;
mod node;
mod peers;
mod placement;
mod queue;
mod reading;
mod record;
mod renewal;
mod renewals;
mod shard;
mod step;
mod takeover;
mod taking;
#[cfg(test)]
mod tests;
mod timing;

pub use effect::{Admission, HomeEffect, NoAdmission, NotStored, StepDownCause};
pub use event::{AppendResult, HomeEvent, LastMessage};
pub use heartbeat::{HeardNode, Heartbeat, HomeClaim, HomeLeft};
pub use history::{HEAD_EPOCHS_MAX, KnownHeads};
pub use homes::{Homes, HomesConfig};
pub use node::{NodeId, NodeLife, NodeTime, SLOT_MAX, Slot};
pub use record::{
    AppendId, CommonEntry, HomeLine, HomeMessage, HomeRecord, JournalHead, KeptEpoch, KeptMember,
    KeptState, StoredMessage,
};
pub use shard::{Shard, ShardSubject};
pub use timing::{
    ALIVE_MS, ALONE_MS, APPEND_OPEN_MS, BEAT_BYTES_MAX, CLOCKS_APART_MS, CUT_OFF_MS,
    EPOCHS_KEPT_MAX, FORGOTTEN_MS, GROUP_BYTES_MAX, GROUP_LINES_MAX, HEADS_OF_BEAT_MAX, HEARD_MAX,
    HEARTBEAT_GAP_MS, HEARTBEAT_MS, LOG_RETRY_MS, NODE_NAME_BYTES_MAX, NODES_MAX, NUMBER_MAX,
    PURGE_RETRY_MS, RENEWAL_MS, RETURN_MS, SILENCE_MS, TICK_MS, TOPICS_MAX, WAITING_BYTES_MAX,
    WAITING_LINES_MAX,
};
