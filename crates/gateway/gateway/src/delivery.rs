//! Delivery of calls, and their ends: what the topic delivers where, subscriptions, and answers.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use model::{
    Answer, Form, LinkId, LogLevel, Outcome, ParticipantId, Payload, Refusal, RefusalCode,
};
use store::Ledger;
use topic::End;
use upstream::Subscription;
use upstream::tasks::ServerTask;
use wire::mcp::input;

use crate::by_rule::answered;
use crate::call::{Call, Delivered};
use crate::incoming::Names;
use crate::live::{ConfiguredServer, Event, ProposalView, Server};
use crate::tasks::{journal, kept::KeptTasks, relay as tasks};
use crate::{dispatch::Dispatch, results, returns, traces};

/// Notes where the topic delivers a call.
pub(crate) fn note(
    dispatch: &Arc<Dispatch>,
    call: &Call,
    server: &Server,
    link: LinkId,
    own: Option<&str>,
    logs: Option<LogLevel>,
    proposal: Option<&ProposalView>,
) {
    let topic: Weak<Dispatch> = Arc::downgrade(dispatch);
    let server = match server {
        Server::Gateway => ParticipantId::gateway(),
        Server::Upstream(server) => server.id.clone(),
    };
    let awaited = answered::awaited(dispatch, call, own, proposal);
    if let (Some(span), Some(proposal)) = (call.span.get(), proposal) {
        span.follow(traces::context_of(dispatch, proposal));
    }
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
        awaited,
    });
}

/// Subscribes the caller to a resource at its server. `own_uri` is the server's own spelling, if the
/// caller has another.
pub(crate) fn subscribe(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    server: &Arc<ConfiguredServer>,
    own_uri: Option<Arc<str>>,
) {
    let dispatch = Arc::clone(dispatch);
    let call = Arc::clone(call);
    let server = Arc::clone(server);
    tokio::spawn(async move {
        let link = call.link.id;
        let uri = uri_of(&call, own_uri.as_deref());
        let follows = || dispatch.with(|topic| topic.follows(link, &server.id, uri));
        let done = match server.upstream.session(&call.caller()).await {
            // The caller has cancelled it or left while the session was opened.
            Ok(_) if !follows() => return,
            Ok(session) => {
                let account = call.link.participant.id.account();
                session.subscribe(link, account, uri).await
            }
            Err(refusal) => Err(refusal),
        };
        if !follows() {
            // Its caller has cancelled it or left since, and nothing else would end it at the server.
            let subscription = Subscription::Resource(uri.to_owned());
            server.upstream.unsubscribe(link, &subscription);
        }
        match done {
            Ok(answer) => answer_with(&dispatch, &call, answer),
            Err(refusal) => fail(&dispatch, &call, refusal),
        }
    });
}

/// Ends a subscription of the caller at its server. `own_uri` is as for [`subscribe`].
pub(crate) fn unsubscribe(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    server: &ConfiguredServer,
    own_uri: Option<Arc<str>>,
) {
    // In whichever session it was made, and if that is closed, for its successor.
    let uri = uri_of(call, own_uri.as_deref()).to_owned();
    server
        .upstream
        .unsubscribe(call.link.id, &Subscription::Resource(uri));
    answer_body(dispatch, call, "{}".into());
}

/// The URI that a call names, as its server spells it.
fn uri_of<'a>(call: &'a Call, own_uri: Option<&'a str>) -> &'a str {
    own_uri
        .or_else(|| call.request.target.as_ref().map(model::Target::as_str))
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

/// Ends a call from its server's side. If this is still inside the effect that delivered the call it
/// is a step from there: the gateway's answers are events like those of servers.
pub(crate) fn end(dispatch: &Arc<Dispatch>, call: &Call, end: End<Answer>) {
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
pub(crate) fn settle(dispatch: &Arc<Dispatch>, call: &Arc<Call>, mut answer: Answer) {
    if call.request.payload.form == Form::Modern {
        answer = with_questions(call, answer);
        if let Some(sealed) = returns::with_sealed_state(dispatch, call, &answer) {
            answer = sealed;
        }
    }
    let answer = tasks::rename_answer(dispatch, call, answer);
    if let Some(task) = call.task.became()
        && let Some(journal) = journal::keeps(dispatch, &call.link.participant.id, task)
    {
        return reply_once_written(dispatch, call, answer, Arc::clone(task), journal.clone());
    }
    reply(dispatch, call, &answer);
}

/// Sends the caller the answer by which it learns of a task, once the task is on disk. The call is
/// over, so that no effect can overtake this.
fn reply_once_written(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    answer: Answer,
    task: Arc<ServerTask>,
    journal: Ledger<KeptTasks>,
) {
    let dispatch = Arc::clone(dispatch);
    let call = Arc::clone(call);
    tokio::spawn(async move {
        match journal::write(&dispatch, &journal, &call.link, &task).await {
            Ok(()) => reply(&dispatch, &call, &answer),
            Err(refusal) => call.reply().refuse(&refusal),
        }
    });
}

/// Sends the caller an answer of its server, under public URIs, unless the caller knows the
/// server's own.
fn reply(dispatch: &Arc<Dispatch>, call: &Call, answer: &Answer) {
    let server = match call.names {
        Names::Public => call.delivered.get().map(|delivered| &delivered.server),
        Names::Own => None,
    };
    reply_by(dispatch, call, answer, server);
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
    let respell = |own_uri: &str| dispatch.respelled(link, server?, own_uri);
    if let Some(cut) = results::cut(dispatch, &reply, answer, &respell) {
        return reply.settle(&cut, &|_| None);
    }
    reply.settle(answer, &respell);
}

/// A legacy server's error that asks for URLs, as the result that asks its modern caller, if the
/// client can open them.
fn with_questions(call: &Call, answer: Answer) -> Answer {
    if answer.outcome == Outcome::Ok {
        return answer;
    }
    let opens_urls = json::at(&call.client().capabilities, &["elicitation", "url"]).is_some();
    let asked = opens_urls.then(|| input::of_url_error(&answer)).flatten();
    asked.unwrap_or(answer)
}

/// Serves a call in a task of its own, as a part of an effect that has to wait. The body that the
/// future gives is the result of the call.
pub(crate) fn spawn<F>(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    serve: impl FnOnce(Arc<Dispatch>, Arc<Call>) -> F,
) where
    F: Future<Output = Result<Vec<u8>, Refusal>> + Send + 'static,
{
    let dispatch = Arc::clone(dispatch);
    let call = Arc::clone(call);
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
