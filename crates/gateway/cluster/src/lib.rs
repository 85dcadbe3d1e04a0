//! Homes of topics among several nodes: membership, take-over, fences, the barrier, admission.
mod admitting;
mod appending;
mod barrier;
mod beats;
mod effect;
mod event;
mod following;
mod heartbeat;
mod history;
mod home;
mod homes;
mod members;
mod node;
mod peers;
mod placement;
mod record;
mod renewals;
mod shard;
mod step;
mod takeover;
mod taking;
mod timing;

pub use effect::{Admission, HomeEffect, NoAdmission, NotStored, StepDownCause};
pub use event::{AppendResult, HomeEvent, LastMessage};
pub use heartbeat::{HeardNode, Heartbeat, HomeClaim, HomeLeft};
pub use history::HEAD_EPOCHS_MAX;
pub use homes::{Homes, HomesConfig};
pub use node::{Incarnation, NodeId, NodeTime, SLOT_MAX, Slot};
pub use record::{AppendId, CommonEntry, HomeLine, HomeMessage, HomeRecord, JournalHead, StoredMessage};
pub use shard::{Shard, ShardSubject};
pub use timing::{
    ALIVE_MS, ALONE_MS, CLOCKS_APART_MS, CUT_OFF_MS, FORGOTTEN_MS, GROUP_BYTES_MAX, GROUP_LINES_MAX,
    HEARTBEAT_GAP_MS, HEARTBEAT_MS, LOG_RETRY_MS, RENEWAL_MS, RETURN_MS, SILENCE_MS, TICK_MS,
    WAITING_LINES_MAX,
};
