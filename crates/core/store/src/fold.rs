//! Folds: what owners make of their records.

use serde::{Serialize, de::DeserializeOwned};

/// The state that follows from the records of one owner, in their order. The owner defines what its
/// records mean, how many it keeps, and which of them rebuild the state.
pub trait Fold: Default + Send + 'static {
    /// The owner's name in the journal: lower-case letters and underscores. It never changes, since
    /// journals have it.
    const OWNER: &'static str;

    /// A record of the owner: a JSON object with at least one member.
    type Record: Serialize + DeserializeOwned;

    /// Takes the next record. The same records give the same state: no clock and no chance decides.
    fn apply(&mut self, record: &Self::Record);

    /// Whether the append of a record is reported only once it is in force at all nodes of a cluster:
    /// it may take away what they allow. A journal of one process does not ask.
    fn is_for_all(_: &Self::Record) -> bool {
        false
    }

    /// Number of records that [`Fold::records`] returns. Asked after each append: it must be cheap.
    fn live(&self) -> usize;

    /// The shortest list of records that rebuilds this state; a compaction writes it. Drops what
    /// has expired at `now_ms`, in Unix milliseconds, from list and state.
    fn records(&mut self, now_ms: u64) -> Vec<Self::Record>;
}
