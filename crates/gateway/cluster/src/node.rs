//! Nodes: names, slots, lives of processes, and the time of a step.

use std::sync::Arc;

/// The number of a node in ids that clients bring back, given by the common journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u16);

/// The greatest slot.
pub const SLOT_MAX: u16 = 1_023;

/// The number of one life of a node's process: random, so that no two lives have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

/// One life of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId {
    /// The name of the node, which outlives its process.
    pub name: Arc<str>,
    /// The life of its process.
    pub incarnation: Incarnation,
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
