//! Causes of refusals and ends.

/// Why something was refused or ended, for records and for wires that must say so. Callers on MCP wires cannot tell
/// [`Cause::Unknown`] from [`Cause::NotAdmitted`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Nothing has this name.
    Unknown,
    /// No capability admits it.
    NotAdmitted,
    /// It was admitted, and the capability has been withdrawn since.
    Withdrawn,
    /// The method or the target is no part of a kind.
    Malformed,
    /// The rate limit.
    RateLimited,
    /// A limit of the topic.
    Limit,
    /// The server is not in the topic.
    UpstreamDown,
    /// The server could not take the request, or gave no answer.
    Failed,
    /// Its time was over.
    Expired,
    /// What it belonged to is over.
    Moot,
    /// The name is taken on the other side.
    Taken,
    /// A newer link of the same participant is there.
    Replaced,
    /// A kind that only the gateway itself may use.
    Reserved,
    /// The proposal behind it was rejected.
    Rejected,
    /// The proposal behind it was withdrawn.
    TakenBack,
    /// No participant decides about a proposal of its own.
    Own,
    /// The proposal is decided already, or is being decided.
    Decided,
    /// The decision is about something else than was proposed.
    Differs,
    /// It is not what was proposed.
    Mismatch,
    /// The server describes the tool otherwise now.
    Redefined,
    /// An envelope of this id has proposed already.
    Repeated,
    /// What must be on disk first cannot be written.
    LogUnavailable,
}

impl Cause {
    /// The cause as it is recorded.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Unknown => "unknown",
            Cause::NotAdmitted => "not_admitted",
            Cause::Withdrawn => "withdrawn",
            Cause::Malformed => "malformed",
            Cause::RateLimited => "rate_limited",
            Cause::Limit => "limit",
            Cause::UpstreamDown => "upstream_down",
            Cause::Failed => "failed",
            Cause::Expired => "expired",
            Cause::Moot => "moot",
            Cause::Taken => "taken",
            Cause::Replaced => "replaced",
            Cause::Reserved => "reserved",
            Cause::Rejected => "rejected",
            Cause::TakenBack => "taken_back",
            Cause::Own => "own",
            Cause::Decided => "decided",
            Cause::Differs => "conflict",
            Cause::Mismatch => "conflict: this is not what was proposed",
            Cause::Redefined => "redefined",
            Cause::Repeated => "repeat",
            Cause::LogUnavailable => "log_unavailable",
        }
    }
}

/// Why the topic ended a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ended {
    /// Its participant was revoked.
    Revoked,
    /// Another link of its participant listens to the room now.
    Replaced,
}

/// Why a receiver that the gateway plays does not act on an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ignored {
    /// An envelope of this id and sender was acted on before.
    Repeat,
    /// Kind and payload differ.
    Mismatch,
    /// An answer to a request that named other participants.
    NotAsked,
}
