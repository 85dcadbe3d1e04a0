//! Nodes: names, slots, lives of processes, and the time of a step.

use std::sync::Arc;

/// The number of a node in ids that clients bring back, given by the common journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u16);

/// The greatest slot.
pub const SLOT_MAX: u16 = 1_023;

/// One life of a process, in its data directory, which one process at a time has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeLife {
    /// The number of the data directory: random, and written when the directory was made.
    pub directory: u64,
    /// The number of the life in it: each is greater than those before.
    pub life: u64,
}

impl NodeLife {
    /// Whether this life is over because a later one has the directory.
    #[must_use]
    pub fn is_before(self, other: Self) -> bool {
        self.directory == other.directory && self.life < other.life
    }
}

/// One life of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId {
    /// The name of the node, which outlives its process.
    pub name: Arc<str>,
    /// The life of its process.
    pub incarnation: NodeLife,
}

/// The time of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeTime {
    /// A steady clock that also goes on while the machine sleeps (Linux: `CLOCK_BOOTTIME`),
    /// milliseconds. All that is decided by time is decided by this clock; an earlier time than
    /// that of the step before counts as that.
    pub steady_ms: u64,
    /// The wall clock, milliseconds. Nodes compare it when one of them joins; nothing else depends
    /// on it.
    pub wall_ms: u64,
}
