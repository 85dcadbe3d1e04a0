//! Delivery of calls to servers: choice of the session, form of the request, answers.

use std::sync::{Arc, Weak};

use access::account;
use bytes::Bytes;
use model::{
    Answer, Coding, Form, LinkId, LogLevel, Notice, Outcome, ParticipantId, Payload, Refusal,
    RefusalCode, Request,
};
use topic::{Cause, End, Subject, Target};
use upstream::curation::Author;
use upstream::tasks::LOST;
use upstream::{CallEvents, Caller, Outgoing, Session, Subscription};
use wire::mcp::task::{TaskWish, plain as plain_call};
use wire::mcp::{input, relay};

use crate::call::{Call, Delivered};
use crate::live::{ConfiguredServer, Event, ProposalView, Server};
use crate::proposals::open::is_redefined;
use crate::tasks::{bridge, follow::Follower, journal};
use crate::{
    accounts, context::call_number, curation, dispatch::Dispatch, record::Record, results, returns,
    tasks::relay as tasks, unfit,
};

/// Notes where the topic delivers a call.
pub(crate) fn note(
    dispatch: &Arc<Dispatch>,
    call: &Call,
    (server, link): (&Server, LinkId),
    logs: Option<LogLevel>,
    proposal: Option<&ProposalView>,
) {
    let topic: Weak<Dispatch> = Arc::downgrade(dispatch);
    let server = match server {
        Server::Gateway => ParticipantId::gateway(),
        Server::Upstream(server) => server.id.clone(),
    };
    let (proposal, proposer) = proposal
        .map(|proposal| (proposal.id, proposal.by.clone()))
        .unzip();
    // A call is delivered once.
    let _ = call.delivered.set(Delivered {
        topic,
        link,
        server,
        logs,
        proposal,
        proposer,
    });
}

/// Gives the topic back what a server notified about a call before its caller was answered for now.
pub(crate) fn miss(dispatch: &Arc<Dispatch>, call: &Call, notice: Notice) {
    let Some(Delivered { server, .. }) = call.delivered.get() else {
        return;
    };
    dispatch.take(Event::Notice {
        server,
        subject: Subject::Call(call.id),
        level: None,
        notice,
    });
}

/// Delivers a call to a configured server.
pub(crate) fn to_server(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    server: &Arc<ConfiguredServer>,
    own: Option<Arc<str>>,
    proposal: Option<&ProposalView>,
) {
    let edited = proposal.and_then(|proposal| proposal.ruling.as_ref()?.params.as_deref());
    // What was reviewed was shown in JSON, and runs as it was shown.
    let shown = proposal.and_then(|_| call.shown().ok());
    let reviewed = proposal
        .zip(shown)
        .and_then(|(proposal, shown)| curation::reviewed(&proposal.content.opened, edited, shown));
    let edited = reviewed.and_then(|reviewed| relay::with_arguments(shown?, reviewed));
    // A call that was held becomes no task of its server: its proposal is the task.
    let plain = proposal.filter(|_| call.wish != TaskWish::None);
    let plain = plain.and_then(|_| plain_call(edited.as_ref().unwrap_or(&call.request)));
    let protobuf = call.request.payload.coding == Coding::Proto;
    let request = plain
        .or(edited)
        .or_else(|| shown.filter(|_| protobuf).cloned());
    match call.request.method.as_str() {
        "resources/subscribe" => return subscribe(dispatch, call, server, own),
        "resources/unsubscribe" => return unsubscribe(dispatch, call, server, own),
        _ => {}
    }
    let about = call.task.about();
    if let Some(task) = about.filter(|task| bridge::takes(call, task)) {
        return bridge::serve(dispatch, call, task);
    }
    let own = about.map(|task| Arc::clone(&task.origin.own)).or(own);
    // A task is asked about in the session in which it runs, if that matters.
    let session = match about.filter(|task| task.origin.instance != 0) {
        Some(task) => match task.session() {
            None => {
                return fail(
                    dispatch,
                    call,
                    Refusal::new(RefusalCode::UpstreamDown, LOST),
                );
            }
            session => session,
        },
        None => server
            .upstream
            .open_session(&caller_of(dispatch, call, server)),
    };
    if let Some(session) = session {
        return send_by(dispatch, call, (server, &session), own, request.as_ref());
    }
    let (dispatch, call, server) = (Arc::clone(dispatch), Arc::clone(call), Arc::clone(server));
    tokio::spawn(async move {
        match server
            .upstream
            .session(&caller_of(&dispatch, &call, &server))
            .await
        {
            Ok(_) if call.is_over() => {}
            Ok(session) => send_by(&dispatch, &call, (&server, &session), own, request.as_ref()),
            Err(refusal) => fail(&dispatch, &call, refusal),
        }
    });
}

/// The caller whose sessions a call uses. The caller of a parked call may have gone, and is asked
/// nothing. Where each caller has an account, what was proposed uses its proposer's.
fn caller_of<'a>(dispatch: &'a Dispatch, call: &'a Call, server: &ConfiguredServer) -> Caller<'a> {
    let is_parked = call.is_parked();
    if let Some(callers) = &server.callers {
        let proposer = call
            .delivered
            .get()
            .and_then(|delivered| delivered.proposer.as_ref());
        let participant = proposer.unwrap_or(&call.link.participant.id);
        if is_parked || *participant != call.link.participant.id {
            // In the modern form sessions belong to participants, not to links.
            let own = dispatch.own.caller();
            // What was approved may run long after the token with which it was proposed has ended.
            let token = callers.accounts.latest_token(participant.as_str());
            return Caller {
                participant,
                account: account(participant),
                form: Form::Modern,
                token,
                ..own
            };
        }
    }
    if is_parked {
        dispatch.own.caller()
    } else {
        call.caller()
    }
}

/// Sends a call by a session of its server, if what the session lists has its target and does not
/// withhold it.
fn send_by(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    (server, session): (&ConfiguredServer, &Arc<Session>),
    own: Option<Arc<str>>,
    request: Option<&Request>,
) {
    if let Some(said) = accounts::is_connected_already(server, call, session, own.as_deref()) {
        return answer_body(dispatch, call, said);
    }
    match accounts::own_name(server, call, session, own) {
        Ok(_) if is_redefined(dispatch, server, call, session) => {
            fail(
                dispatch,
                call,
                *topic::request_refusal(Cause::ToolChanged, None),
            );
        }
        Ok(own) if curation::is_hidden(dispatch, server, call, own.as_deref()) => {
            let target = call
                .request
                .target
                .as_ref()
                .map(|named| Target::Tool(named.as_str()));
            fail(
                dispatch,
                call,
                *topic::request_refusal(Cause::Unknown, target),
            );
        }
        Ok(own) => {
            if let Some(model::Target::Tool(public)) = &call.request.target {
                server.upstream.note_call(own.as_deref().unwrap_or(public));
            }
            send(dispatch, call, session, own.as_deref(), request);
        }
        Err(refusal) => fail(dispatch, call, refusal),
    }
}

/// Sends a call by a session, after the log level that its caller wants, if the server must learn
/// it.
fn send(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    session: &Arc<Session>,
    own: Option<&str>,
    request: Option<&Request>,
) {
    let logs = call.delivered.get().and_then(|delivered| delivered.logs);
    // A legacy link has one level, a modern one those of its requests.
    let instead = call.link.form == Form::Legacy;
    if !logs.is_some_and(|level| session.want_level(call.link.id, level, instead)) {
        return send_now(dispatch, call, session, own, request);
    }
    let (own, request) = (own.map(str::to_owned), request.cloned());
    let (dispatch, call, session) = (Arc::clone(dispatch), Arc::clone(call), Arc::clone(session));
    tokio::spawn(async move {
        session.pass_level().await;
        if !call.is_over() {
            send_now(&dispatch, &call, &session, own.as_deref(), request.as_ref());
        }
    });
}

fn send_now(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    session: &Arc<Session>,
    own: Option<&str>,
    request: Option<&Request>,
) {
    let written = request;
    let request = match request {
        None if !takes(session, call, own) => match call.shown() {
            Ok(shown) => Some(shown),
            Err(refusal) => return fail(dispatch, call, refusal.clone()),
        },
        request => request,
    };
    let whole = match completed(call, session, own, request) {
        Ok(whole) => whole,
        Err(refusal) if refusal.code == RefusalCode::SchemaViolation => {
            return unfit_end(dispatch, call, unfit::passed(call, refusal));
        }
        Err(refusal) => return fail(dispatch, call, refusal),
    };
    let request = whole.as_ref().or(request);
    if session.validates() && call.request.method.as_str() == "tools/call" {
        let checked = request.unwrap_or(&call.request);
        if let Some(unfit) = unfit::end(call, checked, &session.manifest(), own) {
            return unfit_end(dispatch, call, unfit);
        }
    }
    let fitted = match call.request.method.as_str() {
        "tools/call" => tasks::fit(dispatch, call, session, own, request).map(Some),
        _ => Ok(None),
    };
    let fitted = match fitted {
        Ok(fitted) => fitted,
        Err(refusal) => return fail(dispatch, call, refusal),
    };
    // Only a modern server gives out states of its own.
    if call.is_retry && session.era() != call.request.payload.form {
        return fail(dispatch, call, returns::unknown());
    }
    let related = tasks::own_relation(dispatch, call, session);
    if !call.enter(session) {
        return fail(
            dispatch,
            call,
            Refusal::new(RefusalCode::UpstreamDown, LOST),
        );
    }
    let changed = fitted
        .as_ref()
        .and_then(|fitted| fitted.request.as_ref())
        .or(request);
    let declares = fitted.as_ref().is_some_and(|fitted| fitted.declares);
    let outgoing = Outgoing {
        own,
        related_task: related.as_deref(),
        tasks: declares,
        ..call.outgoing(changed.unwrap_or(&call.request), call_number(call.id))
    };
    let events: Arc<dyn CallEvents> = match call.task.follows() {
        true => Follower::new(dispatch, call, session, own, declares, changed),
        false => Arc::<Call>::clone(call),
    };
    match session.call(outgoing, events) {
        // It may have been cancelled before the session knew it.
        Ok(()) if call.is_over() => call.cancel_at_server("the caller has gone"),
        Ok(()) => move_unsent(dispatch, call, session),
        Err(refusal) if refusal.code == RefusalCode::UpstreamDown && call.may_go_again() => {
            send_again(dispatch, call, session, own, written);
        }
        Err(refusal) => fail(dispatch, call, refusal),
    }
}

/// A call with the presets of its tool; `None` if it stays as it is. What was reviewed runs as it
/// was shown, or not at all.
fn completed(
    call: &Call,
    session: &Session,
    own: Option<&str>,
    request: Option<&Request>,
) -> Result<Option<Request>, Refusal> {
    let Some(curation) = session.curation() else {
        return Ok(None);
    };
    let is_reviewed = call
        .delivered
        .get()
        .is_some_and(|delivered| delivered.proposal.is_some());
    let by = if is_reviewed {
        Author::Reviewer
    } else {
        Author::Caller
    };
    match curation::completed(
        curation,
        &session.manifest(),
        request.unwrap_or(&call.request),
        own,
        by,
    ) {
        Ok(None) => Ok(None),
        _ if is_reviewed => Err(*topic::request_refusal(Cause::Redefined, None)),
        whole => whole,
    }
}

/// Ends a call whose arguments do not fit, and records it.
fn unfit_end(dispatch: &Arc<Dispatch>, call: &Call, unfit: End<Answer>) {
    if let Some(delivered) = call.delivered.get() {
        Record::of(dispatch).unfit(call, &delivered.server);
    }
    end(dispatch, call, unfit);
}

/// Whether a session takes the request of a call as its caller wrote it: bytes of protobuf pass to
/// a server that reads them, unless the answer has a URI that its caller knows by another name, or
/// arguments of the tool are preset or hidden.
fn takes(session: &Session, call: &Call, own: Option<&str>) -> bool {
    let renames = own.is_some() && call.request.method.as_str() == "resources/read";
    let rewrites = || {
        session
            .curation()
            .is_some_and(|curation| curation::rewrites(curation, call, own))
    };
    call.request.payload.coding == Coding::Json
        || session.coding() == Coding::Proto && !renames && !rewrites()
}

/// Sends a call by the successor of a session that ended before it took the call.
fn send_again(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    ended: &Arc<Session>,
    own: Option<&str>,
    request: Option<&Request>,
) {
    let Some(server) = dispatch.server_named(ended.upstream()) else {
        return fail(
            dispatch,
            call,
            Refusal::new(RefusalCode::UpstreamDown, "the server was removed"),
        );
    };
    let (own, request) = (own.map(Arc::from), request.cloned());
    let (dispatch, call, ended) = (Arc::clone(dispatch), Arc::clone(call), Arc::clone(ended));
    tokio::spawn(async move {
        match server
            .upstream
            .successor(&ended, &caller_of(&dispatch, &call, &server))
            .await
        {
            Ok(_) if call.is_over() => {}
            Ok(session) => send_by(&dispatch, &call, (&server, &session), own, request.as_ref()),
            Err(refusal) => fail(&dispatch, &call, refusal),
        }
    });
}

/// Moves the calls that wait in a session behind one whose server asks the caller to the caller's
/// next session.
pub(crate) fn move_unsent(dispatch: &Arc<Dispatch>, call: &Call, from: &Arc<Session>) {
    let unsent = from.take_deferred();
    if unsent.is_empty() {
        return;
    }
    let (dispatch, from, link) = (
        Arc::clone(dispatch),
        Arc::clone(from),
        Arc::clone(&call.link),
    );
    let (client, token) = (call.client().clone(), call.token());
    tokio::spawn(async move {
        let next = match dispatch.server_named(from.upstream()) {
            Some(server) => {
                server
                    .upstream
                    .session(&link.caller_with(&client, token))
                    .await
            }
            None => Err(Refusal::new(
                RefusalCode::UpstreamDown,
                "the server was removed",
            )),
        };
        for unsent in unsent {
            let operation = dispatch.context.numbered(unsent.number().0);
            // If it is over, no session needs to send it.
            let Some(call) = dispatch.with(|topic| topic.call(operation)) else {
                continue;
            };
            match &next {
                Ok(next) if call.move_to(next) => next.adopt(unsent),
                Ok(_) => from.adopt(unsent),
                Err(refusal) => unsent.refuse(refusal),
            }
            if call.is_over() {
                call.cancel_at_server("the caller has gone");
            } else if let Ok(next) = &next {
                // It may ask by now.
                move_unsent(&dispatch, &call, next);
            }
        }
    });
}

fn subscribe(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    server: &Arc<ConfiguredServer>,
    own: Option<Arc<str>>,
) {
    let (dispatch, call, server) = (Arc::clone(dispatch), Arc::clone(call), Arc::clone(server));
    tokio::spawn(async move {
        let (link, uri) = (call.link.id, uri_of(&call, own.as_deref()));
        let done = match server.upstream.session(&call.caller()).await {
            Ok(_) if call.is_over() => return,
            Ok(session) => {
                session
                    .subscribe(link, account(&call.link.participant.id), uri)
                    .await
            }
            Err(refusal) => Err(refusal),
        };
        if !dispatch.with(|topic| topic.follows(link, &server.id, uri)) {
            // Its caller has cancelled it or left meanwhile, and nothing else would end it at the
            // server.
            server
                .upstream
                .unsubscribe(link, &Subscription::Resource(uri.to_owned()));
        }
        match done {
            Ok(answer) => answer_with(&dispatch, &call, answer),
            Err(refusal) => fail(&dispatch, &call, refusal),
        }
    });
}

fn unsubscribe(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    server: &ConfiguredServer,
    own: Option<Arc<str>>,
) {
    // In whichever session it was made, and if that is closed, for its successor.
    let uri = uri_of(call, own.as_deref()).to_owned();
    server
        .upstream
        .unsubscribe(call.link.id, &Subscription::Resource(uri));
    answer_body(dispatch, call, "{}".into());
}

fn uri_of<'a>(call: &'a Call, own: Option<&'a str>) -> &'a str {
    own.or_else(|| call.request.target.as_ref().map(model::Target::as_str))
        .unwrap_or_default()
}

/// Answers a call from its server's side.
pub(crate) fn answer_with(dispatch: &Arc<Dispatch>, call: &Call, answer: Answer) {
    end(
        dispatch,
        call,
        End::Answered {
            outcome: answer.outcome,
            answer,
        },
    );
}

/// Answers a call with a result in its caller's form.
pub(crate) fn answer_body(dispatch: &Arc<Dispatch>, call: &Call, body: Vec<u8>) {
    answer_with(dispatch, call, own_answer(call.request.payload.form, body));
}

/// An answer of the gateway's own.
pub(crate) fn own_answer(form: Form, body: impl Into<Bytes>) -> Answer {
    Answer {
        outcome: Outcome::Ok,
        payload: Payload::body(form, body),
    }
}

/// Answers a call with the body of its result, or refuses it.
pub(crate) fn finish(dispatch: &Arc<Dispatch>, call: &Call, body: Result<Vec<u8>, Refusal>) {
    match body {
        Ok(body) => answer_body(dispatch, call, body),
        Err(refusal) => fail(dispatch, call, refusal),
    }
}

/// Ends a call that gets no answer.
pub(crate) fn fail(dispatch: &Arc<Dispatch>, call: &Call, refusal: Refusal) {
    end(dispatch, call, End::Failed(Box::new(refusal)));
}

fn end(dispatch: &Arc<Dispatch>, call: &Call, end: End<Answer>) {
    if let Some(delivered) = call.delivered.get() {
        dispatch.take(Event::Answer {
            link: delivered.link,
            operation: call.id,
            end,
        });
    }
}

/// Gives the caller its answer: with the gateway's ids of tasks, and under public URIs. A task that
/// outlives the gateway is on disk first.
pub(crate) fn settle(dispatch: &Arc<Dispatch>, call: &Arc<Call>, answer: Answer) {
    let mut answer = with_questions(call, answer);
    if let Some(sealed) = returns::with_sealed_state(dispatch, call, &answer) {
        answer = sealed;
    }
    let answer = tasks::rename_answer(dispatch, call, answer);
    call.end();
    let created = call.task.became();
    let written = created.and_then(|task| Some((journal::keeps(dispatch, task)?.clone(), task)));
    let Some((journal, task)) = written else {
        return reply(dispatch, call, &answer);
    };
    let task = Arc::clone(task);
    let (dispatch, call) = (Arc::clone(dispatch), Arc::clone(call));
    tokio::spawn(async move {
        match journal::write(&dispatch, &journal, &call.link, &task).await {
            Ok(()) => reply(&dispatch, &call, &answer),
            Err(refusal) => call.reply().refuse(&refusal),
        }
    });
}

/// Sends the caller an answer, under public URIs.
fn reply(dispatch: &Arc<Dispatch>, call: &Call, answer: &Answer) {
    let server = call.delivered.get().map(|delivered| &delivered.server);
    reply_by(
        dispatch,
        call,
        answer,
        server.filter(|_| call.names == crate::incoming::Names::Public),
    );
}

/// Sends the caller an answer, with the URIs of this server under their public spelling: as much of
/// it as the caller gets at once.
pub(crate) fn reply_by(
    dispatch: &Arc<Dispatch>,
    call: &Call,
    answer: &Answer,
    server: Option<&ParticipantId>,
) {
    let reply = call.reply();
    let link = reply.request().link.id;
    let respell = |own: &str| dispatch.respelled(link, server?, own);
    if let Some(cut) = results::cut(dispatch, &reply, answer, &respell) {
        return reply.settle(&cut, &|_| None);
    }
    reply.settle(answer, &respell);
}

/// A legacy server's error that asks for URLs, as the result that asks a modern caller whose client
/// can open them.
fn with_questions(call: &Call, answer: Answer) -> Answer {
    if answer.outcome == Outcome::Ok || call.request.payload.form != Form::Modern {
        return answer;
    }
    let opens_urls = json::at(&call.client().capabilities, &["elicitation", "url"]).is_some();
    let asked = opens_urls.then(|| input::of_url_error(&answer)).flatten();
    asked.unwrap_or(answer)
}

/// Serves a call concurrently.
pub(crate) fn spawn<F>(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    serve: impl FnOnce(Arc<Dispatch>, Arc<Call>) -> F,
) where
    F: Future<Output = Result<Vec<u8>, Refusal>> + Send + 'static,
{
    let (dispatch, call) = (Arc::clone(dispatch), Arc::clone(call));
    let body = serve(Arc::clone(&dispatch), Arc::clone(&call));
    tokio::spawn(async move { finish(&dispatch, &call, body.await) });
}

/// The refusal of a method that the gateway does not serve.
pub(crate) fn unknown_method(method: &str) -> Refusal {
    Refusal::new(
        RefusalCode::Unsupported,
        format!("method not found: {method}"),
    )
}
