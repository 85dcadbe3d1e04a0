//! Types between the gateway and a session: session key, client profile, call, events of a call.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use client::AccountHolder;
use model::{
    Answer, Digest, Form, LinkId, LogLevel, Notice, OperationId, ParticipantId, Refusal, Request,
};
use wire::mcp::relay::OutgoingTrace;
use wire::mcp::{Version, extensions};

use crate::question::Question;

/// Numbers of requests in either direction, in one process: never used twice.
#[derive(Debug)]
pub struct RequestNumbers(pub(crate) AtomicU64);

impl Default for RequestNumbers {
    fn default() -> Self {
        Self(AtomicU64::new(1))
    }
}

impl RequestNumbers {
    /// The next number.
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// The first of so many numbers in a row.
    pub fn block(&self, len: u64) -> u64 {
        self.0.fetch_add(len, Ordering::Relaxed)
    }
}

/// The owner of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SessionKey {
    /// All callers share the session.
    Shared,
    /// One legacy client session of the gateway owns it.
    Legacy {
        /// The client session.
        link: LinkId,
        /// The access token for which it is, where tokens are exchanged.
        token: Option<Digest>,
    },
    /// One modern caller owns it.
    Principal {
        /// The caller.
        participant: ParticipantId,
        /// Hash of the client capabilities that the caller declares.
        capabilities: u64,
        /// The access token for which it is, where tokens are exchanged.
        token: Option<Digest>,
    },
}

impl SessionKey {
    /// The key of a caller's own sessions; without a caller, that of the shared one.
    pub(crate) fn of(owner: Option<&Caller<'_>>) -> Self {
        owner.map_or(Self::Shared, Caller::key)
    }

    /// Whether one caller owns the session.
    #[must_use]
    pub fn is_own(&self) -> bool {
        match self {
            Self::Shared => false,
            Self::Legacy { .. } | Self::Principal { .. } => true,
        }
    }

    /// The link that owns the session.
    #[must_use]
    pub fn owner(&self) -> Option<LinkId> {
        match self {
            Self::Legacy { link, .. } => Some(*link),
            Self::Shared | Self::Principal { .. } => None,
        }
    }
}

/// Questions that a server may ask clients: the capability that a client declares for each, and the
/// method.
pub(crate) const QUESTIONS: [(&str, &str); 3] = [
    ("sampling", "sampling/createMessage"),
    ("elicitation", "elicitation/create"),
    ("roots", "roots/list"),
];

/// The declarations of a client, as raw JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientProfile {
    /// Its `ClientCapabilities` object.
    pub capabilities: Bytes,
    /// Its `Implementation` object, if it sent one.
    pub client_info: Option<Bytes>,
    /// The protocol revision that it speaks.
    pub version: Version,
}

impl ClientProfile {
    /// The name in its `Implementation` object.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        let info = self.client_info.as_ref()?;
        Some(json::at(info, &["name"]).and_then(json::text)?.into_owned())
    }

    /// Whether the client shows apps, which call tools by the names that their servers have for
    /// them (MCP Apps).
    #[must_use]
    pub fn shows_apps(&self) -> bool {
        extensions::shows_apps(&self.capabilities)
    }

    /// Whether servers may send requests to the client: it declares sampling, elicitation or roots.
    #[must_use]
    pub fn can_be_asked(&self) -> bool {
        // Most clients declare no capabilities.
        if *self.capabilities == *b"{}" {
            return false;
        }
        QUESTIONS
            .iter()
            .any(|(name, _)| json::at(&self.capabilities, &[name]).is_some())
    }
}

/// A caller, as far as it decides which session it uses.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// Its link in the topic.
    pub link: LinkId,
    /// The participant.
    pub participant: &'a ParticipantId,
    /// The account on which it has its shares.
    pub account: &'a str,
    /// The form of its payloads.
    pub form: Form,
    /// The declarations of its client: on its link, or in this request.
    pub client: &'a ClientProfile,
    /// The SHA-256 of the access token of an issuer with which it came. Where tokens are exchanged,
    /// a session is of one alone.
    pub token: Option<Digest>,
}

/// A caller that is remembered: the owner of a session.
#[derive(Debug, Clone)]
pub(crate) struct SessionOwner {
    link: LinkId,
    participant: ParticipantId,
    account: Box<str>,
    form: Form,
    pub(crate) client: ClientProfile,
    token: Option<Digest>,
}

impl SessionOwner {
    pub(crate) fn participant(&self) -> &ParticipantId {
        &self.participant
    }

    pub(crate) fn holder(&self) -> AccountHolder<'_> {
        self.caller().holder()
    }

    pub(crate) fn caller(&self) -> Caller<'_> {
        let Self {
            link,
            participant,
            account,
            form,
            client,
            token,
        } = self;
        Caller {
            link: *link,
            participant,
            account,
            form: *form,
            client,
            token: *token,
        }
    }
}

impl From<&Caller<'_>> for SessionOwner {
    fn from(caller: &Caller<'_>) -> Self {
        let Caller {
            link,
            participant,
            account,
            form,
            client,
            token,
        } = *caller;
        let participant = participant.clone();
        let client = client.clone();
        Self {
            link,
            participant,
            account: account.into(),
            form,
            client,
            token,
        }
    }
}

impl<'a> Caller<'a> {
    /// The holder of the account that its sessions use.
    pub(crate) fn holder(&self) -> AccountHolder<'a> {
        AccountHolder {
            participant: self.participant,
            token: self.token,
        }
    }

    /// The key of the sessions that this caller alone uses. A modern client has no session of its
    /// own that could own one.
    pub(crate) fn key(&self) -> SessionKey {
        match self.form {
            Form::Legacy => SessionKey::Legacy {
                link: self.link,
                token: self.token,
            },
            Form::Modern => SessionKey::Principal {
                participant: self.participant.clone(),
                capabilities: hash(&self.client.capabilities),
                token: self.token,
            },
        }
    }
}

/// The hash of a client's own words. Keyed, so that no stranger can choose words that share another
/// caller's session.
fn hash(bytes: &[u8]) -> u64 {
    static KEYED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEYED.hash_one(bytes)
}

/// A request to a server.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// The request as the caller wrote it. The session converts its payload where the server speaks
    /// another era.
    pub request: &'a Request,
    /// The request's number: JSON-RPC id and progress token at the server.
    pub number: CallNumber,
    /// The server's own name of the tool or prompt, the URI or the task id, if the caller wrote
    /// another.
    pub own: Option<&'a str>,
    /// The server's id of the task that the request belongs to, if the caller wrote another.
    pub related_task: Option<&'a str>,
    /// Whether a modern server may answer the call of a legacy caller with a task.
    pub tasks: bool,
    /// The trace of the request, if it is traced.
    pub trace: Option<OutgoingTrace<'a>>,
    /// The client's `Implementation` object, raw JSON. Modern servers get it with each request.
    pub client_info: Option<&'a [u8]>,
    /// The client's `ClientCapabilities` object, raw JSON. Modern servers get of it what they may
    /// ask.
    pub capabilities: &'a [u8],
    /// The level from which on the caller wants log messages. Modern servers get it with each
    /// request of a legacy caller.
    pub log_level: Option<LogLevel>,
    /// The participant that sends the request. Only servers that dial in learn it.
    pub from: &'a str,
    /// The account on which the call is.
    pub account: &'a str,
}

/// The number of a call: JSON-RPC id and progress token of the call at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallNumber(pub u64);

impl CallNumber {
    /// The number of the call that an operation is.
    #[must_use]
    pub fn of(operation: OperationId) -> Self {
        Self(operation.number())
    }

    /// The number in a progress token that the server sends back, as it is spelled.
    #[must_use]
    pub fn of_token(token: &[u8]) -> Option<Self> {
        std::str::from_utf8(token).ok()?.parse().ok().map(Self)
    }
}

/// A call's stay at its server.
#[derive(Debug, Clone, Copy)]
pub struct AtServer {
    /// The time from when it was sent until its answer.
    pub time: Duration,
    /// The type of the error that its end is, by the conventions of OpenTelemetry.
    pub error: Option<&'static str>,
}

/// Receives everything about one call. The session's tasks call it; an implementation must not
/// block.
pub trait CallEvents: Send + Sync {
    /// The server sent a notification about this call; it carries the caller's progress token.
    fn notice(&self, notice: Notice);
    /// The server asks this caller.
    fn question(&self, question: Question);
    /// The call waits: its session runs calls one after the other, and the server asks the caller of
    /// the one before it, which may take as long as a person needs. Another session may send it
    /// ([`Session::take_unsent`](crate::Session::take_unsent)); if none does, it goes on waiting.
    fn deferred(&self) {}
    /// The call was at its server. Called before the end, if the call was not cancelled and the server, not the caller, was waited for.
    fn measured(&self, _at_server: AtServer) {}
    /// The call ended. Called exactly once, as the last event; never after a cancellation.
    fn done(&self, end: Result<Answer, Refusal>);
}
