//! What is known about how well a session is. Must not know what is done about it.

use platform::Mutex;
use std::sync::atomic::AtomicBool;

/// What is known about a session's health.
#[derive(Default)]
pub(super) struct Health {
    /// Set together with `trouble`; looked at with every answer.
    pub(super) troubled: AtomicBool,
    /// Why the last request failed, in a way that others may share; cleared by the next answer.
    pub(super) trouble: Mutex<Option<String>>,
    /// The server is being asked whether it is still modern.
    pub(super) doubted: AtomicBool,
    /// The server is being asked for a sign of life, and nothing came since.
    pub(super) silent: AtomicBool,
}
