//! How an upstream is doing, as it may be told outside.

use std::sync::Arc;

use model::Era;

/// The four states of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Being started for the first time, or again.
    Starting,
    /// Answers.
    Ready,
    /// Answers, but something is wrong: see the reason.
    Degraded,
    /// Does not run; the next attempt waits for its time.
    Down,
}

impl State {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::Down => "down",
        }
    }
}

/// One upstream at this moment. Holds nothing internal: no command, path, URL or secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Its configured name.
    pub name: Arc<str>,
    /// Its state.
    pub state: State,
    /// Why it is not ready, in plain words.
    pub reason: Option<String>,
    /// The eras that it is known to speak.
    pub eras: Vec<Era>,
    /// The revision spoken on the shared session.
    pub version: Option<String>,
    /// Process id of the shared session's child; for the operator only.
    pub pid: Option<u32>,
    /// Sessions open now, the shared ones included.
    pub sessions: usize,
    /// Calls open now.
    pub calls: usize,
    /// Tools, resources, templates and prompts last listed.
    pub listed: [usize; 4],
    /// Tools that are left out, each with its reason.
    pub quarantined: Vec<Quarantined>,
    /// How often it was started again after its first start.
    pub restarts: u64,
    /// Milliseconds until the next attempt, if one is waited for.
    pub retry_after_ms: Option<u64>,
}

/// A tool that is not listed because its schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// The tool's own name.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}
