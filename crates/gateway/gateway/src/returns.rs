//! Callers that were answered for now and come back: the sealed states that they hold
//! (`requestState`), and what these open.

use auth::Purpose;
use model::{Answer, OperationId, ParticipantId, Refusal, RefusalCode, Request};
use platform::{random, unix_ms};
use wire::mcp::input;

use crate::incoming::{Incoming, named};
use crate::{call::Call, dispatch::Dispatch, link::Link};

/// Time that a state may be used, in milliseconds: a day.
const STATE_MS: u64 = 24 * 3600 * 1000;
/// Longest state of the gateway, in bytes.
const STATE_BYTES_MAX: usize = 1024;
/// Beginning of each state of the gateway, so that a changed one is refused and not taken for a
/// server's.
const PREFIX: &str = "portmoot.";
const STATE: Purpose = Purpose {
    name: "state",
    valid_ms: STATE_MS,
};
/// Beginning of each state of a server that the gateway has sealed: none is given on to a caller as
/// it is.
const SERVER_PREFIX: &str = "portmoot-server.";
const SERVER_STATE: Purpose = Purpose {
    name: "server state",
    valid_ms: STATE_MS,
};

/// Why a caller was answered for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// Its call was held as this proposal.
    Held(OperationId),
    /// This call asked questions, in this round.
    Asked(OperationId, u32),
    /// Its participant has no account at the server.
    Connect,
}

/// Destination of a request that comes back.
#[derive(Debug)]
pub(crate) enum Return {
    /// To nothing: it has no state.
    None,
    /// To its server, which gave it this state.
    Server(String),
    /// To a request that was answered with a link to a connect page, and is made anew. The flag
    /// says whether the person refused to open it.
    Anew { declined: bool },
    /// To a proposal.
    Proposal(OperationId),
    /// To a paused call, with answers to questions of these ids.
    Paused {
        call: OperationId,
        round: u32,
        answers: Vec<(OperationId, Answer)>,
    },
}

impl Return {
    /// Makes of a request what its server gets: what its caller has added to come back is for the
    /// gateway.
    pub(crate) fn restore(&self, incoming: &mut Incoming) {
        match self {
            Self::None | Self::Proposal(_) => {}
            Self::Paused { round, .. } => incoming.round = *round,
            Self::Server(state) => {
                if let Some(request) = input::back_with_state(&incoming.request, state) {
                    incoming.request = request;
                }
            }
            // The request as it was made first.
            Self::Anew { declined } => {
                incoming.declined = *declined;
                incoming.state = None;
                if let Some(request) = input::without_retry(&incoming.request) {
                    incoming.request = request;
                }
            }
        }
    }
}

/// Seals the state with which the caller of a call comes back: good for its participant and for
/// this very request.
pub(crate) fn seal(dispatch: &Dispatch, call: &Call, why: Why) -> String {
    let bound = input::binding(&call.request)
        .map(|digest| digest.to_string())
        .unwrap_or_default();
    let text = match why {
        Why::Held(proposal) => format!("held {proposal} 0 {bound}"),
        Why::Asked(operation, round) => format!("asked {operation} {round} {bound}"),
        Why::Connect => format!("connect {} 0 {bound}", call.id),
    };
    let sealed = STATE.seal(
        &dispatch.context.sealer,
        &call.link.participant.id,
        unix_ms(),
        random(),
        &text,
    );
    format!("{PREFIX}{sealed}")
}

/// The answer with the state sealed that a modern server gives its caller with questions: good for
/// the caller's participant, this server and this target. A server that all callers use by one
/// account could not tell them apart. `None` for an answer without one. For a modern caller: no
/// other gets such an answer.
pub(crate) fn with_sealed_state(
    dispatch: &Dispatch,
    call: &Call,
    answer: &Answer,
) -> Option<Answer> {
    let state = input::state_of(answer)?;
    let server = &call.delivered.get()?.server;
    // Its own states are sealed already.
    if *server == ParticipantId::gateway() {
        return None;
    }
    let bound = input::target_binding(&call.request)
        .map(|digest| digest.to_string())
        .unwrap_or_default();
    let text = format!("{server} {bound} {state}");
    let sealed = SERVER_STATE.seal(
        &dispatch.context.sealer,
        &call.link.participant.id,
        unix_ms(),
        random(),
        &text,
    );
    input::with_state(answer, &format!("{SERVER_PREFIX}{sealed}"))
}

/// The state of the server, if it was sealed for this participant, the server to which the request
/// goes, and its target.
fn open_servers(
    dispatch: &Dispatch,
    link: &Link,
    request: &Request,
    sealed: &str,
) -> Option<String> {
    let text = SERVER_STATE.open(
        &dispatch.context.sealer,
        &link.participant.id,
        unix_ms(),
        sealed,
    )?;
    // The server's state comes last: it may have blanks of its own.
    let mut parts = text.splitn(3, ' ');
    let server = parts.next()?;
    let bound = parts.next()?;
    let state = parts.next()?;
    let routed = named(request).and_then(|target| dispatch.route(link.id, target));
    // What leads to no server is refused as any unknown target.
    let is_its = routed.is_none_or(|(routed, _)| routed.id.as_str() == server);
    let is_bound = input::target_binding(request).is_some_and(|digest| digest.to_string() == bound);
    (is_its && is_bound).then(|| state.to_owned())
}

/// Opens the state of a request.
///
/// # Errors
/// The refusal of a state that was changed, is too old, was sealed for another participant or
/// request, or comes with answers that cannot be read.
pub(crate) fn open(
    dispatch: &Dispatch,
    link: &Link,
    request: &Request,
    state: &str,
) -> Result<Return, Refusal> {
    if let Some(sealed) = state.strip_prefix(SERVER_PREFIX) {
        return open_servers(dispatch, link, request, sealed)
            .map(Return::Server)
            .ok_or_else(unknown);
    }
    let sealed = state
        .strip_prefix(PREFIX)
        .filter(|sealed| sealed.len() <= STATE_BYTES_MAX)
        .ok_or_else(unknown)?;
    let sealer = &dispatch.context.sealer;
    let who = &link.participant.id;
    let text = STATE
        .open(sealer, who, unix_ms(), sealed)
        .ok_or_else(unknown)?;
    let (why, bound) = read(&text).ok_or_else(unknown)?;
    if input::binding(request).is_none_or(|digest| digest.to_string() != bound) {
        return Err(unknown());
    }
    match why {
        Why::Held(proposal) => Ok(Return::Proposal(proposal)),
        Why::Connect => Ok(Return::Anew {
            declined: input::declines(&responses(request)?),
        }),
        Why::Asked(call, round) => {
            let answers = responses(request)?;
            let id = |key: &str| Some(dispatch.context.numbered(key.parse().ok()?));
            let answers = answers
                .into_iter()
                .filter_map(|(key, answer)| Some((id(&key)?, answer)));
            Ok(Return::Paused {
                call,
                round,
                answers: answers.collect(),
            })
        }
    }
}

/// The answers in a request, each with the key of its question.
///
/// # Errors
/// A refusal of answers that cannot be read.
pub(crate) fn responses(request: &Request) -> Result<Vec<(String, Answer)>, Refusal> {
    input::responses(request).ok_or_else(|| {
        Refusal::new(
            RefusalCode::Malformed,
            "`inputResponses` must be an object of objects",
        )
    })
}

/// The refusal of a state that is no good.
pub(crate) fn unknown() -> Refusal {
    Refusal::new(RefusalCode::Malformed, "this `requestState` is not good for this request: it was changed or is too old, or is of another request or participant")
        .hint("make the request again without it")
}

fn read(text: &str) -> Option<(Why, &str)> {
    let mut parts = text.split(' ');
    let kind = parts.next()?;
    let id = parts.next()?.parse().ok()?;
    let round = parts.next()?.parse().ok()?;
    let bound = parts.next()?;
    let why = match kind {
        "held" => Why::Held(id),
        "asked" => Why::Asked(id, round),
        "connect" => Why::Connect,
        _ => return None,
    };
    Some((why, bound))
}
