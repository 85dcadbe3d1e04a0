//! Clock of a node.

use cluster::NodeTime;

/// A clock for the steps of a node.
pub trait NodeClock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> NodeTime;
}

/// The machine's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineClock;

impl NodeClock for MachineClock {
    fn now(&self) -> NodeTime {
        NodeTime {
            steady_ms: platform::steady_ms(),
            wall_ms: platform::unix_ms(),
        }
    }
}
