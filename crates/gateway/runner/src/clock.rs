//! Clock of a node.

use cluster::NodeTime;

/// A clock for the steps of a node.
pub trait NodeClock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> NodeTime;

    /// The steady clock's part of it, milliseconds: each request asks for it.
    fn steady_ms(&self) -> u64 {
        self.now().steady_ms
    }
}

/// The machine's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineClock;

impl NodeClock for MachineClock {
    fn now(&self) -> NodeTime {
        NodeTime {
            steady_ms: self.steady_ms(),
            wall_ms: platform::unix_ms(),
        }
    }

    fn steady_ms(&self) -> u64 {
        platform::steady_ms()
    }
}
