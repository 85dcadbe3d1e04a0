//! Status of a server: state, reason, counts. Contains no arguments, path or secret; the server's
//! own words are marked.

use std::sync::Arc;

use client::processes::Root;
use model::ParticipantId;
use wire::mcp::Era;

/// The states of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ServerState {
    /// The gateway starts it, for the first time or again.
    Starting,
    /// It answers.
    Ready,
    /// It does not run, because no client uses it: it is listed as it was, and starts at its first
    /// use.
    Idle,
    /// It answers, but requests or lists fail: see the reason.
    Degraded,
    /// It does not run; the next attempt waits for its back-off.
    Down,
    /// Its account needs the operator: a sign-in, a client, or another configuration (see the
    /// reason).
    NeedsLogin,
}

impl ServerState {
    /// Whether a call of the server is served: it runs, or starts for the call.
    #[must_use]
    pub fn is_ready(self) -> bool {
        match self {
            Self::Ready | Self::Idle => true,
            Self::Starting | Self::Degraded | Self::Down | Self::NeedsLogin => false,
        }
    }

    /// The word for it in listings and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One server at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// Its configured name.
    pub name: Arc<str>,
    /// Its state.
    pub state: ServerState,
    /// Why it is not ready, in plain words.
    pub reason: Option<String>,
    /// The cause of its last failure, while it is not ready; for operators only.
    pub cause: Option<String>,
    /// Advice to operators about that failure, if there is any.
    pub hint: Option<&'static str>,
    /// The last lines of the process that failed; for operators only, and untrusted.
    pub last_words: Vec<Arc<str>>,
    /// Whether its shared session reached it with the last request. Only a degraded server may be
    /// out of reach.
    pub reachable: bool,
    /// The eras that it is known to speak.
    pub eras: Vec<Era>,
    /// The protocol revision of the shared session.
    pub version: Option<String>,
    /// Process id of the shared session's child; for the operator only.
    pub pid: Option<u32>,
    /// Open sessions, the shared ones included.
    pub sessions: usize,
    /// Those of them that belong to single callers.
    pub own_sessions: usize,
    /// Where the processes of the sessions begin; for the operator only.
    pub processes: Vec<Root>,
    /// The participants whose clients use it, sorted; for operators only.
    pub users: Vec<ParticipantId>,
    /// Why all callers share one session although some could have their own: a second process did
    /// not start. For operators only.
    pub single: Option<String>,
    /// Why a caller's own session did not open last; for operators only.
    pub own_cause: Option<String>,
    /// Open calls.
    pub calls: usize,
    /// Tools, resources, templates and prompts in the last lists.
    pub listed: [usize; 4],
    /// Quarantined tools.
    pub quarantined: Vec<QuarantinedTool>,
    /// Tools of which the server sent a schema in protobuf that cannot be used: their arguments are
    /// any object.
    pub untyped: Vec<QuarantinedTool>,
    /// Tools that the configuration hides.
    pub hidden: Vec<String>,
    /// Lines of the configuration about its tools that have another effect than they seem to have.
    pub notes: Vec<String>,
    /// Restarts after an unexpected end.
    pub restarts: u64,
    /// Milliseconds until the next attempt, during a back-off.
    pub retry_after_ms: Option<u64>,
}

/// A tool whose schema is unusable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedTool {
    /// The tool's own name.
    pub name: String,
    /// Why its schema is unusable.
    pub reason: String,
}
