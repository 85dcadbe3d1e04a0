//! What survives a restart: the journal of one data directory, and beside it the audit log, for people.
//!
//! Owns the file formats, the lock that gives a directory to one process, and the order "synced first, told second".
//! Must not know who may issue a token, what a capability means, or how anything is sealed: it keeps names, hashes,
//! strings and keys as they are handed in.

pub mod audit;
mod directory;
mod disk;
mod error;
mod group;
mod journal;
mod record;
mod state;
mod writer;

pub use directory::{Directory, Owner};
pub use error::StoreError;
pub use journal::Journal;
pub use record::{
    ClosedProposals, DecidedProposal, Decision, EndedProposal, EndedSessions, GrantChange, IssuedToken,
    OpenedProposal, Record, SealingKey,
};
pub use state::{
    CLOSED_PROPOSALS_KEPT_MS, CLOSED_PROPOSALS_MAX, ENDED_BYTES_MAX, ENDED_KEPT, ENDED_SESSIONS_KEPT, Grant,
    Proposal, State, closed_digest,
};
pub use writer::{JournalPlace, WRITER_BYTES_MAX, WRITER_PLACES_MAX, Writer};
