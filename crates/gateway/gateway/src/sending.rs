//! Sending of calls to servers: by which session, and as what. It is decided once, as a [`Plan`],
//! and then carried out.
//!
//! The request that goes out is made of the caller's in this order, as each step depends on those
//! before it: what was reviewed, in JSON if the session does not take the caller's protobuf, with the
//! presets of its tool, checked, fitted to what the server says about tasks.
//!
//! An *own name* is a server's spelling of the name or URI of what a call is about; it is `None`
//! wherever its caller spells it so. A request *in place of* the caller's is `None` if the caller's
//! goes out as it came.

use std::sync::Arc;

use model::method::READ_RESOURCE;
use model::{Answer, Coding, Form, Refusal, RefusalCode, Request, Target};
use topic::{Cause, End};
use upstream::curation::{Author, Curation};
use upstream::tasks::LOST;
use upstream::{CallEvents, CallNumber, Caller, Outgoing, Session};
use wire::mcp::relay;
use wire::mcp::task::{TaskWish, plain as plain_call};

use crate::by_rule::tighten;
use crate::call::Call;
use crate::live::{ConfiguredServer, ProposalView};
use crate::proposals::open::is_redefined;
use crate::tasks::{bridge, follow::Follower, relay as tasks};
use crate::traces::{self, SentTrace};
use crate::{accounts, curation, delivery, dispatch::Dispatch, record::Record, returns, unfit};

/// A call that goes to a configured server.
struct Sending {
    server: Arc<ConfiguredServer>,
    /// The own name of its target, as the topic knows it.
    own_name: Option<Arc<str>>,
    /// The request in place of the caller's: as it was reviewed.
    reviewed_request: Option<Request>,
    /// The owner of the sessions that it uses.
    owner: SessionOwner,
    /// Whether a session that ended had it before, and did not take it.
    is_second: bool,
    /// Whether its session may have listed its tool since it was approved.
    is_listed_anew: bool,
}

/// The owner of the sessions that a call uses at a server.
#[derive(Clone, Copy)]
enum SessionOwner {
    /// Its caller.
    Caller,
    /// The gateway: the caller may have gone, and is asked nothing.
    Gateway,
    /// The participant with the account at the server: the proposer if the call was proposed.
    Account,
}

/// The way in which a session sends a call.
struct Plan {
    /// The own name of its target, as the session knows it.
    own_name: Option<Arc<str>>,
    /// The request in place of the caller's.
    request: Option<Request>,
    /// Whether it declares that it may become a task.
    declares: bool,
    /// The server's id of the task that it belongs to.
    related: Option<Arc<str>>,
    /// Whether the server must learn first which log messages the caller wants.
    passes_level: bool,
}

/// The end of a call that is not sent.
enum Unsendable {
    /// The gateway answers it.
    Answered(Vec<u8>),
    Refused(Refusal),
    /// Its arguments do not fit, which is recorded.
    Unfit(End<Answer>),
}

impl From<Refusal> for Unsendable {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Delivers a call to a configured server.
pub(crate) fn to_server(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    server: Arc<ConfiguredServer>,
    own_name: Option<Arc<str>>,
    proposal: Option<&ProposalView>,
) {
    match call.request.method.as_str() {
        "resources/subscribe" => return delivery::subscribe(dispatch, call, &server, own_name),
        "resources/unsubscribe" => return delivery::unsubscribe(dispatch, call, &server, own_name),
        _ => {}
    }
    let about = call.task.about();
    if let Some(task) = about
        && bridge::takes(call, task)
    {
        return bridge::serve(dispatch, call, task);
    }
    let sending = Sending {
        own_name: about.map(|task| Arc::clone(&task.origin.own)).or(own_name),
        reviewed_request: proposal.and_then(|proposal| reviewed_request(call, proposal)),
        owner: SessionOwner::of(call, &server, proposal),
        is_second: false,
        is_listed_anew: false,
        server,
    };
    let session = match about {
        // A task is asked about in the session in which it runs, if that matters.
        Some(task) if task.origin.instance != 0 => {
            let Some(session) = task.session() else {
                let lost = Refusal::new(RefusalCode::UpstreamDown, LOST);
                return delivery::fail(dispatch, call, lost);
            };
            Some(session)
        }
        Some(_) | None => {
            let server = &sending.server;
            let caller = sending.owner.caller(dispatch, call, server);
            server.upstream.open_session(&caller)
        }
    };
    match session {
        Some(session) => send(dispatch, call, &session, sending),
        None => send_once_open(dispatch, call, sending),
    }
}

/// The request in place of the caller's that carries out a proposal. What was reviewed was shown in
/// JSON, and runs as it was shown.
fn reviewed_request(call: &Call, proposal: &ProposalView) -> Option<Request> {
    let edited = proposal
        .ruling
        .as_ref()
        .and_then(|ruling| ruling.params.as_deref());
    let shown = call.shown().ok();
    let edited = shown.and_then(|shown| {
        let arguments = curation::reviewed(&proposal.content.opened, edited, shown)?;
        relay::with_arguments(shown, arguments)
    });
    // A call that was held becomes no task of its server: its proposal is the task.
    let plain = match call.wish {
        TaskWish::None => None,
        TaskWish::Asks | TaskWish::Declares => plain_call(edited.as_ref().unwrap_or(&call.request)),
    };
    let written = plain.or(edited);
    if written.is_none() && call.request.payload.coding == Coding::Proto {
        return shown.cloned();
    }
    written
}

impl SessionOwner {
    /// Read while the call is delivered, and not later: its caller may be answered for now while a
    /// session opens, and then it is still the one that called.
    fn of(call: &Call, server: &ConfiguredServer, proposal: Option<&ProposalView>) -> Self {
        let is_away = call.waiter.is_away();
        let is_proposers = proposal.is_some_and(|proposal| proposal.by != call.link.participant.id);
        if server.callers.is_some() && (is_away || is_proposers) {
            Self::Account
        } else if is_away {
            Self::Gateway
        } else {
            Self::Caller
        }
    }

    fn caller<'a>(
        self,
        dispatch: &'a Dispatch,
        call: &'a Call,
        server: &ConfiguredServer,
    ) -> Caller<'a> {
        match self {
            Self::Caller => call.caller(),
            Self::Gateway => dispatch.gateway_link.caller(),
            Self::Account => {
                let participant = call.proposer().unwrap_or(&call.link.participant.id);
                // What was approved may run long after the token with which it was proposed has
                // ended.
                let accounts = server.callers.as_ref().map(|callers| &callers.accounts);
                let token =
                    accounts.and_then(|accounts| accounts.latest_token(participant.as_str()));
                Caller {
                    participant,
                    account: participant.account(),
                    // Whatever form the proposer's client has: in the modern one sessions belong to
                    // participants, not to links, and this proposer may have no link any more.
                    form: Form::Modern,
                    token,
                    ..dispatch.gateway_link.caller()
                }
            }
        }
    }
}

/// Opens a session and sends the call by it.
fn send_once_open(dispatch: &Arc<Dispatch>, call: &Arc<Call>, sending: Sending) {
    let dispatch = Arc::clone(dispatch);
    let call = Arc::clone(call);
    let sending = Sending {
        is_listed_anew: true,
        ..sending
    };
    tokio::spawn(async move {
        let server = &sending.server;
        let caller = sending.owner.caller(&dispatch, &call, server);
        match server.upstream.session(&caller).await {
            Ok(session) => dispatch.proceed(call.id, move |dispatch, call| {
                send(dispatch, call, &session, sending);
            }),
            Err(refusal) => delivery::fail(&dispatch, &call, refusal),
        }
    });
}

/// Sends a call by a session of its server, or ends it. One that was approved waits until the tools are
/// known that the server has announced: it runs as it was shown, or not at all.
fn send(dispatch: &Arc<Dispatch>, call: &Arc<Call>, session: &Arc<Session>, sending: Sending) {
    let is_reviewed_tool = call.request.calls_tool() && call.is_reviewed();
    if !is_reviewed_tool || !session.is_relisting() {
        return send_listed(dispatch, call, session, sending);
    }
    let dispatch = Arc::clone(dispatch);
    let call = call.id;
    let session = Arc::clone(session);
    let sending = Sending {
        is_listed_anew: true,
        ..sending
    };
    tokio::spawn(async move {
        session.relisted().await;
        dispatch.proceed(call, move |dispatch, call| {
            send_listed(dispatch, call, &session, sending);
        });
    });
}

/// Sends a call by a session of its server whose tools are known, or ends it.
fn send_listed(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    session: &Arc<Session>,
    sending: Sending,
) {
    let plan = match plan(dispatch, call, session, &sending) {
        Ok(plan) => plan,
        Err(Unsendable::Answered(body)) => return delivery::answer_body(dispatch, call, body),
        Err(Unsendable::Refused(refusal)) => return delivery::fail(dispatch, call, refusal),
        Err(Unsendable::Unfit(end)) => {
            if let Some(delivered) = call.delivered.get() {
                Record(dispatch).unfit(call, &delivered.server);
            }
            return delivery::end(dispatch, call, end);
        }
    };
    if !plan.passes_level {
        return carry_out(dispatch, call, session, &plan, sending);
    }
    let dispatch = Arc::clone(dispatch);
    let call = call.id;
    let session = Arc::clone(session);
    tokio::spawn(async move {
        session.pass_level().await;
        dispatch.proceed(call, move |dispatch, call| {
            carry_out(dispatch, call, &session, &plan, sending);
        });
    });
}

/// Decides how a session sends a call.
///
/// # Errors
/// The end of the call, if the session does not send it.
fn plan(
    dispatch: &Arc<Dispatch>,
    call: &Call,
    session: &Arc<Session>,
    sending: &Sending,
) -> Result<Plan, Unsendable> {
    let own_name = target(dispatch, call, session, sending)?;
    let is_tool = call.request.calls_tool();
    // Only a modern server gives out states of its own.
    if call.is_retry && session.era() != call.request.payload.form {
        return Err(returns::unknown().into());
    }
    let mut request = request_for(
        call,
        session,
        own_name.as_deref(),
        sending.reviewed_request.as_ref(),
    )?;
    let mut declares = false;
    if is_tool {
        let written = request.as_ref();
        let fitted = tasks::fit(dispatch, call, session, own_name.as_deref(), written)?;
        declares = fitted.declares;
        request = fitted.request.or(request);
    }
    let logs = call.delivered.get().and_then(|delivered| delivered.logs);
    // A legacy link has one level, a modern one those of its requests.
    let instead = call.link.form == Form::Legacy;
    let passes_level = logs.is_some_and(|level| session.want_level(call.link.id, level, instead));
    Ok(Plan {
        related: tasks::own_relation(dispatch, call, session),
        own_name,
        request,
        declares,
        passes_level,
    })
}

/// The own name of a call's target, whose use is noted: it counts also if the call is refused by what
/// follows, as its caller has asked for the tool.
///
/// # Errors
/// The end of a call whose target its session does not have, or not as it was approved.
fn target(
    dispatch: &Dispatch,
    call: &Call,
    session: &Arc<Session>,
    sending: &Sending,
) -> Result<Option<Arc<str>>, Unsendable> {
    let server = &*sending.server;
    let own_name = match &server.callers {
        None => sending.own_name.clone(),
        Some(_) => target_of_account(dispatch, call, session, sending)?,
    };
    if sending.is_listed_anew && is_redefined(dispatch, call, session) {
        return Err((*topic::request_refusal(Cause::Redefined, None)).into());
    }
    if let Some(Target::Tool(public)) = &call.request.target {
        server
            .upstream
            .note_call(own_name.as_deref().unwrap_or(public));
    }
    Ok(own_name)
}

/// The target at a server where each caller has an account: the session may list something else
/// than that by which the topic admitted the call.
fn target_of_account(
    dispatch: &Dispatch,
    call: &Call,
    session: &Session,
    sending: &Sending,
) -> Result<Option<Arc<str>>, Unsendable> {
    let server = &*sending.server;
    if let Some(said) =
        accounts::answer_if_connected(server, call, session, sending.own_name.as_deref())
    {
        return Err(Unsendable::Answered(said));
    }
    let own_name = accounts::own_name(server, call, session, sending.own_name.clone())?;
    tighten::check_name(
        dispatch,
        call,
        sending.own_name.as_deref(),
        own_name.as_deref(),
    )?;
    if curation::is_hidden(dispatch, server, call, own_name.as_deref()) {
        let named = call.request.target.as_ref().map(Target::as_str);
        let refusal = topic::request_refusal(Cause::Unknown, named.map(topic::PublicTarget::Tool));
        return Err((*refusal).into());
    }
    if is_redefined(dispatch, call, session) {
        return Err((*topic::request_refusal(Cause::ToolChanged, None)).into());
    }
    Ok(own_name)
}

/// The request in the form in which the session takes it, with all presets of its tool and with
/// arguments that fit. `None` if that is the caller's own.
fn request_for(
    call: &Call,
    session: &Session,
    own_name: Option<&str>,
    reviewed: Option<&Request>,
) -> Result<Option<Request>, Unsendable> {
    let is_json = call.request.payload.coding == Coding::Json;
    let shown = match reviewed {
        None if !is_json && !takes_proto(session, call, own_name) => {
            Some(call.shown().map_err(Refusal::clone)?)
        }
        reviewed => reviewed,
    };
    let whole = match session.curation() {
        Some(curation) => completed(curation, call, session, own_name, shown)?,
        None => None,
    };
    let request = whole.as_ref().or(shown);
    check_fits(call, session, own_name, request.unwrap_or(&call.request))?;
    Ok(whole.or_else(|| shown.cloned()))
}

/// Checks the arguments of a call that goes out as `request`, if its server wants them checked.
///
/// # Errors
/// The end of a call whose arguments do not fit its tool.
fn check_fits(
    call: &Call,
    session: &Session,
    own_name: Option<&str>,
    request: &Request,
) -> Result<(), Unsendable> {
    if !session.validates() || !call.request.calls_tool() {
        return Ok(());
    }
    match unfit::end(call, request, &session.manifest(), own_name) {
        Some(end) => Err(Unsendable::Unfit(end)),
        None => Ok(()),
    }
}

/// Whether a session takes the protobuf of a call as its caller wrote it: the server reads it, its
/// answer has no URI that the caller knows by another name, and no arguments of the tool are preset
/// or hidden.
fn takes_proto(session: &Session, call: &Call, own_name: Option<&str>) -> bool {
    let renames = own_name.is_some() && call.request.method.as_str() == READ_RESOURCE.name;
    let rewrites = session
        .curation()
        .is_some_and(|curation| curation::rewrites(curation, call, own_name));
    session.coding() == Coding::Proto && !renames && !rewrites
}

/// A call with the presets of its tool; `None` if it stays as it is. What was reviewed runs as it
/// was shown, or not at all.
fn completed(
    curation: &Curation,
    call: &Call,
    session: &Session,
    own_name: Option<&str>,
    request: Option<&Request>,
) -> Result<Option<Request>, Unsendable> {
    let is_reviewed = call.is_reviewed();
    let by = if is_reviewed {
        Author::Reviewer
    } else {
        Author::Caller
    };
    let manifest = session.manifest();
    let request = request.unwrap_or(&call.request);
    match curation::completed(curation, &manifest, request, own_name, by) {
        Ok(None) => Ok(None),
        _ if is_reviewed => Err((*topic::request_refusal(Cause::Redefined, None)).into()),
        Err(refusal) if refusal.code == RefusalCode::SchemaViolation => {
            Err(Unsendable::Unfit(unfit::passed(call, refusal)))
        }
        Err(refusal) => Err(refusal.into()),
        Ok(whole) => Ok(whole),
    }
}

/// Carries out a plan. A call that the session does not take goes by the session's successor, once.
fn carry_out(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    session: &Arc<Session>,
    plan: &Plan,
    sending: Sending,
) {
    // First: the answer may come at once, and is read by its session.
    call.sessions.enter(session);
    let request = plan.request.as_ref();
    let own_name = plan.own_name.as_ref();
    let traceparent = traces::sent(call, session, own_name);
    let outgoing = Outgoing {
        trace: traceparent.as_ref().map(SentTrace::outgoing),
        own: plan.own_name.as_deref(),
        related_task: plan.related.as_deref(),
        tasks: plan.declares,
        ..call.outgoing(request.unwrap_or(&call.request), CallNumber::of(call.id))
    };
    let events: Arc<dyn CallEvents> = if call.task.follows() {
        Follower::new(dispatch, call, session, own_name, plan.declares, request)
    } else {
        Arc::<Call>::clone(call)
    };
    match session.call(outgoing, events) {
        // By now it may wait behind one whose server asks the caller.
        Ok(()) => session.offer_deferred(),
        Err(refusal)
            if refusal.code == RefusalCode::UpstreamDown
                && !sending.is_second
                && call.may_go_again() =>
        {
            send_again(dispatch, call, session, sending);
        }
        Err(refusal) => {
            traces::not_sent(call);
            delivery::fail(dispatch, call, refusal);
        }
    }
}

/// Sends a call by the successor of a session that ended before it took the call.
fn send_again(dispatch: &Arc<Dispatch>, call: &Arc<Call>, ended: &Arc<Session>, sending: Sending) {
    let Some(server) = dispatch.server_named(ended.upstream()) else {
        return delivery::fail(dispatch, call, removed());
    };
    let sending = Sending {
        server,
        is_second: true,
        is_listed_anew: true,
        ..sending
    };
    let dispatch = Arc::clone(dispatch);
    let call = Arc::clone(call);
    let ended = Arc::clone(ended);
    tokio::spawn(async move {
        let server = &sending.server;
        let caller = sending.owner.caller(&dispatch, &call, server);
        match server.upstream.successor(&ended, &caller).await {
            Ok(session) => dispatch.proceed(call.id, move |dispatch, call| {
                send(dispatch, call, &session, sending);
            }),
            Err(refusal) => delivery::fail(&dispatch, &call, refusal),
        }
    });
}

fn removed() -> Refusal {
    Refusal::new(RefusalCode::UpstreamDown, "the server was removed")
}
