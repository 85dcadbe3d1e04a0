//! Held calls: each is a proposal, or repeats one.

use std::sync::Arc;

use model::{Answer, ParticipantId, Request, Target};
use platform::random;
use topic::End;
use wire::mcp::{relay, task};

use super::answer;
use super::content::HeldCall;
use super::open::{Opening, Wanted, completed, open, tool_of};
use crate::accounts;
use crate::live::{ConfiguredServer, Event, ProposalView, Server};
use crate::{call::Call, dispatch::Dispatch, incoming::Parks, record::Record, unfit};

/// Holds a call as a proposal. Where its caller has an account, a session of its own says first
/// what would be called.
pub(crate) fn held(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    to: &ParticipantId,
    server: &Server,
    own: Option<Arc<str>>,
) {
    let by = &call.link.participant.id;
    let has_account = |server: &&Arc<ConfiguredServer>| {
        server
            .callers
            .as_ref()
            .is_some_and(|callers| callers.is_connected(by))
    };
    let Some(at) = server.upstream().filter(has_account) else {
        return hold(dispatch, call, to, server, own);
    };
    // An effect does not wait, and a session may take long to open.
    let dispatch = Arc::clone(dispatch);
    let call = Arc::clone(call);
    let at = Arc::clone(at);
    let to = to.clone();
    tokio::spawn(async move {
        let opened = at.upstream.session(&call.caller()).await;
        match opened.and_then(|session| accounts::own_name(&at, &call, &session, own)) {
            Ok(own) => dispatch.proceed(call.id, move |dispatch, call| {
                hold(dispatch, call, &to, &Server::Upstream(at), own);
            }),
            Err(refusal) => {
                dispatch.take(Event::Unproposable {
                    held: call.id,
                    end: End::Failed(Box::new(refusal)),
                });
            }
        }
    });
}

/// Proposes a held call, or says why not. Its steps from inside the effect are the shell's answer to
/// it: the topic waits for one of them.
fn hold(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    to: &ParticipantId,
    server: &Server,
    own: Option<Arc<str>>,
) {
    let shown = match call.shown() {
        Ok(shown) => shown,
        Err(refusal) => {
            let end = End::Failed(Box::new(refusal.clone()));
            dispatch.take(Event::Unproposable { held: call.id, end });
            return;
        }
    };
    let whole = match completed(shown, server, own.as_deref()) {
        Ok(whole) => whole,
        Err(refusal) => {
            Record(dispatch).unfit(call, to);
            dispatch.take(Event::Unproposable {
                held: call.id,
                end: unfit::passed(call, refusal),
            });
            return;
        }
    };
    let shown = whole.as_ref().unwrap_or(shown);
    if let Some(end) = unfit_of(call, shown, server, own.as_deref()) {
        Record(dispatch).unfit(call, to);
        dispatch.take(Event::Unproposable { held: call.id, end });
        return;
    }
    // The proposal is the task, if the caller gets one.
    let plain = task::plain(shown);
    let request: &Request = plain.as_ref().unwrap_or(shown);
    let wanted = Wanted {
        by: &call.link.participant.id,
        to: vec![to.clone()],
        method: request.method.as_str(),
        context: own
            .as_deref()
            .or_else(|| request.target.as_ref().and_then(Target::context)),
        // A held call has no envelope: its id must equal none that a participant chooses.
        envelope: format!("{:032x}", u128::from_le_bytes(random())),
        params: relay::legacy_params(request, own.as_deref()),
        call: Some(HeldCall {
            id: call.id,
            trace: call.span.get().and_then(|span| span.sampled()),
        }),
        envelope_bytes: 0,
    };
    let definition = tool_of(server, wanted.by, wanted.method, wanted.context);
    match open(dispatch, wanted, definition) {
        Ok(opening) => {
            let narrowing = call.narrowing();
            let repeated = dispatch.with(|topic| topic.repeated_by(&opening.terms, narrowing));
            if let Some(proposal) = repeated {
                return repeat(dispatch, call, &opening, &proposal);
            }
            let park_ms = match call.parks {
                Parks::Task => dispatch.context.now_ms(),
                Parks::Retry | Parks::Words => dispatch.hold_until_ms(),
            };
            let Opening {
                id: proposal,
                content,
                terms,
            } = opening;
            dispatch.take(Event::Propose {
                proposal,
                terms: Box::new(terms),
                content,
                held: call.id,
                park_ms,
            });
        }
        Err(refusal) => {
            dispatch.take(Event::Unproposable {
                held: call.id,
                end: End::Failed(Box::new(refusal)),
            });
        }
    }
}

/// Answers a held call that repeats a proposal, so that a caller which asks again opens no second
/// one.
fn repeat(dispatch: &Arc<Dispatch>, call: &Call, opening: &Opening, proposal: &ProposalView) {
    Record(dispatch).repeated(proposal, &opening.content, call.id);
    dispatch.take(Event::Unproposable {
        held: call.id,
        end: answer::repeats(dispatch, call, proposal),
    });
}

/// The end of a held call whose arguments do not fit.
fn unfit_of(
    call: &Call,
    shown: &Request,
    server: &Server,
    own: Option<&str>,
) -> Option<End<Answer>> {
    let server = server.upstream().filter(|_| call.request.calls_tool())?;
    let session = server.upstream.open_session(&call.caller());
    let known = || server.manifest_for(&call.link.participant.id, call.link.form);
    let manifest = session.map_or_else(known, |session| session.manifest());
    server
        .validates(&manifest)
        .then(|| unfit::end(call, shown, &manifest, own))?
}
