//! Storage of one data directory: the journal, which is the source after a restart, and the audit
//! log, which people read.
//!
//! The crate owns the file formats, the lock that gives a directory to one process, and the rule
//! that a record is synced before a caller acts on it. It stores names, hashes, texts and keys as
//! callers pass them.

pub mod audit;
mod directory;
mod disk;
mod error;
mod group;
mod journal;
mod operator_key;
mod owner;
mod record;
pub mod recorder;
mod state;
#[cfg(test)]
mod tests;
mod writer;

pub use directory::Directory;
pub use error::StoreError;
pub use journal::Journal;
pub use operator_key::{operator_key, remove_operator_key, write_operator_key};
pub use owner::DirectoryOwner;
pub use record::{
    ClosedProposals, Consent, CreatedTask, DecidedProposal, Decision, EndedProposal, EndedSessions,
    Family, GrantChange, IssuedToken, OpenedProposal, PinnedDefinition, Record, RenewedFamily,
    SealingKey, UpstreamAccount, UpstreamClient,
};
pub use state::{
    CLOSED_PROPOSALS_KEPT_MS, CLOSED_PROPOSALS_MAX, ENDED_BYTES_MAX, ENDED_KEPT,
    ENDED_SESSIONS_KEPT, Grant, PARTICIPANT_CONSENTS_MAX, PARTICIPANT_FAMILIES_MAX, Proposal,
    State, TASKS_KEPT, closed_digest,
};
pub use writer::{
    JournalPermit, JournalWriter, PARTICIPANT_WRITER_BYTES_MAX, WRITER_BYTES_MAX,
    WRITER_PERMITS_MAX,
};
