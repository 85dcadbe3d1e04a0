//! Request of an envelope to the gateway: its payload read strictly (MCPx v0.1, section 4.3), calls
//! for its addressees.

use std::sync::Arc;

use model::method::is_notification;
use model::{
    Form, GATEWAY, KindRef, ListKind, Method, OperationId, ParticipantId, REJECT, Refusal,
    RefusalCode, Request,
};
use topic::{Intent, Requested};
use wire::mcp::{Params, relay, task::TaskWish};
use wire::mcpx::check::{self, EnvelopeCall, strict};
use wire::mcpx::{Envelope, Head, kind_of, payload};

use crate::brakes::BrakeAsk;
use crate::incoming::{Incoming, Names, Tag};
use crate::link::{Link, Requester};
use crate::live::{Live, Server};
use crate::proposals::decide::RoomRejection;
use crate::proposals::{decide, open};
use crate::{call::Call, dispatch::Dispatch, record::Record, room_reply::RoomReply, traces};

/// Reads what an envelope asks for. Payloads of envelopes that concern participants alone are not
/// opened. `brake` is what one that pauses or resumes asks for.
///
/// # Errors
/// If the decision about a proposal that the envelope makes cannot be recorded.
pub(super) fn read(
    dispatch: &Arc<Dispatch>,
    by: Requester<'_>,
    envelope: &Arc<Envelope>,
    to: &[&str],
    brake: Option<&Result<BrakeAsk, Refusal>>,
) -> Result<Intent<Live>, Refusal> {
    // The topic refuses what is no kind.
    let Ok(kind) = KindRef::parse(envelope.kind()) else {
        return Ok(Intent::None);
    };
    Ok(match Head::of(kind) {
        None if envelope.kind() == REJECT => rejection(dispatch, by.link, envelope),
        None => brake.map_or(Intent::None, braking),
        Some(Head::Response) => answer(dispatch, envelope),
        Some(Head::Proposal) => proposal(dispatch, by.link, envelope),
        Some(Head::Request) => request(dispatch, by, envelope, kind, to)?,
    })
}

/// The intent of an envelope that pauses or resumes: it is carried out once the topic has admitted it.
fn braking(asked: &Result<BrakeAsk, Refusal>) -> Intent<Live> {
    match asked {
        Ok(BrakeAsk { participant, .. }) => Intent::Brake {
            participant: participant.clone(),
        },
        Err(refusal) => Intent::Unreadable {
            refusal: Box::new(refusal.clone()),
        },
    }
}

fn answer(dispatch: &Dispatch, envelope: &Envelope) -> Intent<Live> {
    // The session of a participant that serves reads an answer to the gateway by itself.
    let about = envelope
        .correlation_id()
        .and_then(|about| about.parse::<OperationId>().ok());
    if about.is_some_and(|about| about.0 >> 64 == u128::from(dispatch.context.direct)) {
        return Intent::None;
    }
    payload::read_answer(envelope.payload_bytes()).map_or(Intent::None, |answer| Intent::Answer {
        outcome: answer.outcome,
        answer,
    })
}

fn rejection(dispatch: &Arc<Dispatch>, link: &Arc<Link>, envelope: &Arc<Envelope>) -> Intent<Live> {
    match decide::rejection_of(dispatch, link, envelope) {
        Ok(RoomRejection { reason, ruling }) => Intent::Rejection {
            reason: reason.map(Arc::from),
            ruling,
        },
        Err(refusal) => Intent::Unreadable {
            refusal: Box::new(refusal),
        },
    }
}

fn proposal(dispatch: &Dispatch, link: &Link, envelope: &Envelope) -> Intent<Live> {
    let opening = match strict(envelope.kind(), envelope.payload_bytes()) {
        Ok(check::Act::Proposal(call)) => open::of_envelope(dispatch, link, envelope, &call),
        Ok(check::Act::Request(_) | check::Act::Answer(_) | check::Act::Other) => {
            return Intent::None;
        }
        Err(mismatch) => {
            let refusal = Box::new(mismatched(dispatch, envelope, &mismatch));
            return Intent::Reject {
                refusal,
                published: true,
            };
        }
    };
    match opening {
        Ok(open::Opening {
            id: proposal,
            content,
            terms,
        }) => Intent::Propose {
            proposal,
            terms: Box::new(terms),
            content,
        },
        Err(refusal) => Intent::Reject {
            refusal: Box::new(refusal),
            published: false,
        },
    }
}

/// The refusal of a proposal whose kind and payload differ, which is recorded.
fn mismatched(dispatch: &Dispatch, envelope: &Envelope, mismatch: &check::Mismatch) -> Refusal {
    Record(dispatch).mismatched(envelope, &[GATEWAY], &mismatch.to_string());
    Refusal::new(
        RefusalCode::Malformed,
        format!("kind and payload differ: {mismatch}"),
    )
}

fn request(
    dispatch: &Arc<Dispatch>,
    by: Requester<'_>,
    envelope: &Arc<Envelope>,
    kind: KindRef<'_>,
    to: &[&str],
) -> Result<Intent<Live>, Refusal> {
    if !concerns_gateway(dispatch, envelope.correlation_id(), to) {
        return Ok(noted(kind));
    }
    let Ok(act) = strict(envelope.kind(), envelope.payload_bytes()) else {
        return Ok(Intent::Mismatch);
    };
    let check::Act::Request(call) = act else {
        return Ok(Intent::None);
    };
    let Ok(params) = Params::read(call.message()) else {
        return Ok(Intent::Mismatch);
    };
    if call.method() == "notifications/cancelled" {
        let cancel = |id| Intent::Cancel {
            tag: Tag::of_client(id),
        };
        return Ok(params.request_id().map_or(Intent::None, cancel));
    }
    let ruling = decide::ruling_of(dispatch, by.link, envelope, &call)?;
    if call.is_notification() && ruling.is_none() {
        return Ok(Intent::None);
    }
    let tag = call.message().id().cloned().map(Tag::of_client);
    let asked = AskedOfServers {
        by,
        envelope,
        request: relay::decode_request(&params, Form::ENVELOPE),
        tag: tag.clone(),
        // For tasks there is no way back in a room: a call that asks for one is answered like any
        // other.
        wish: if params.get("task").is_some() {
            TaskWish::Asks
        } else {
            TaskWish::None
        },
        answer_kind: answer_kind(&call),
    };
    let calls: Vec<(OperationId, Arc<Call>)> =
        to.iter().map(|to| asked.call_to(dispatch, to)).collect();
    calls
        .iter()
        .try_for_each(|(_, call)| call.account_request())?;
    let context = call.target().map(Into::into);
    Ok(Intent::Request(Requested {
        method: asked.request.method,
        context,
        tag,
        calls,
        ruling,
    }))
}

/// Kind of the answers to a request.
fn answer_kind(call: &EnvelopeCall) -> String {
    // An empty target has no place in a kind.
    let kind = call
        .kind(Head::Response)
        .or_else(|_| kind_of(Head::Response, call.method(), None));
    kind.unwrap_or_default()
}

/// A request of an envelope to servers.
struct AskedOfServers<'e> {
    by: Requester<'e>,
    envelope: &'e Envelope,
    request: Request,
    tag: Option<Tag>,
    wish: TaskWish,
    answer_kind: String,
}

impl AskedOfServers<'_> {
    /// The call of one addressee, with a new operation id.
    fn call_to(&self, dispatch: &Arc<Dispatch>, to: &str) -> (OperationId, Arc<Call>) {
        // The topic drops the call of an addressee that has no valid id.
        let server = ParticipantId::new(to).unwrap_or_else(|_| ParticipantId::gateway());
        let link = self.by.link;
        let sender = vec![link.participant.id.to_string()];
        let kind = self.answer_kind.clone();
        let mut reply = RoomReply::new(dispatch, &server, sender, kind, self.envelope.id());
        // The built-in tools, and kept results, show what other participants may not see.
        let of_sender = matches!(
            self.request.method.facts().acts_on,
            Some(ListKind::Tools | ListKind::Resources)
        );
        if to == GATEWAY && of_sender {
            reply.alone = Some(link.id);
        }
        let incoming = Incoming {
            wish: self.wish,
            ..Incoming::plain(self.request.clone(), self.tag.clone())
        };
        let operation = dispatch.context.operation();
        let call = Call::new(operation, self.by, incoming, Names::Own, Arc::new(reply));
        // A socket has no headers for each message.
        traces::begin(dispatch, &call, None);
        (operation, call)
    }
}

/// The calls among what an envelope asks for that are traced.
pub(super) fn traced(intent: &Intent<Live>) -> Vec<Arc<Call>> {
    let Intent::Request(requested) = intent else {
        return Vec::new();
    };
    let calls = requested.calls.iter().map(|(_, call)| call);
    calls
        .filter(|call| call.span.get().is_some())
        .cloned()
        .collect()
}

/// Whether an envelope names a server that the gateway plays, or a proposal.
fn concerns_gateway(dispatch: &Dispatch, correlation: Option<&str>, to: &[&str]) -> bool {
    dispatch.with(|topic| {
        let plays = |to: &&str| {
            let server = ParticipantId::new(to).ok().and_then(|to| topic.server(&to));
            server.is_some_and(|server| match &server.handle {
                Server::Gateway => true,
                Server::Upstream(server) => !server.serves(),
            })
        };
        let fulfils = correlation.is_some_and(|about| topic.proposed_by(about).is_some());
        fulfils || to.iter().any(plays)
    })
}

/// A request between participants: the topic notes which of them may answer it.
fn noted(kind: KindRef<'_>) -> Intent<Live> {
    let method = kind.method().unwrap_or_default();
    if is_notification(method) {
        return Intent::None;
    }
    let method = Method::Other(method.into());
    let context = kind.context().map(Into::into);
    Intent::Request(Requested {
        method,
        context,
        tag: None,
        calls: Vec::new(),
        ruling: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: &str, expected: Option<(&str, Option<&str>)>) {
        let found = match noted(KindRef::parse(kind).unwrap()) {
            Intent::Request(requested) => {
                assert!(
                    requested.calls.is_empty() && requested.ruling.is_none(),
                    "{kind}"
                );
                Some((
                    requested.method.as_str().to_owned(),
                    requested.context.map(|context| context.to_string()),
                ))
            }
            _ => None,
        };
        let expected =
            expected.map(|(method, context)| (method.to_owned(), context.map(str::to_owned)));
        assert_eq!(found, expected, "{kind}");
    }

    #[test]
    fn requests_between_participants_are_noted_and_notifications_are_not() {
        check(
            "mcp/request:tools/call:dig",
            Some(("tools/call", Some("dig"))),
        );
        check(
            "mcp/request:resources/read:file:///a:b",
            Some(("resources/read", Some("file:///a:b"))),
        );
        check("mcp/request:tools/list", Some(("tools/list", None)));
        check("mcp/request:notifications/progress", None);
    }
}
