//! Gate: whether acts may happen at a moment, beyond what the log has room for.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// Whether this process may act at this moment. A node of a cluster may while it is the home; its
/// clock is asked each time, so that a process that was stopped for a while does nothing late.
#[derive(Clone)]
pub struct Gate(Arc<dyn Fn() -> bool + Send + Sync>);

impl Gate {
    /// A gate that asks this.
    #[must_use]
    pub fn new(is_open: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_open))
    }

    /// Whether acts may happen now.
    #[must_use]
    pub fn is_open(&self) -> bool {
        (self.0)()
    }
}

/// The words of a refusal while the gate is shut.
pub const SHUT: &str = "another node of the cluster serves this now, or will in a moment";

impl Debug for Gate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}
