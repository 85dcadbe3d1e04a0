//! Delivery of calls, and their ends: what the topic delivers where, subscriptions, and answers.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use model::{
    Answer, Form, LinkId, LogLevel, Outcome, ParticipantId, Payload, Refusal, RefusalCode,
};
use topic::End;
use upstream::Subscription;
use wire::mcp::input;

use crate::call::{Call, Delivered};
use crate::live::{ConfiguredServer, Event, ProposalView, Server};
use crate::tasks::{journal, relay as tasks};
use crate::{dispatch::Dispatch, results, returns};

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

/// Subscribes the caller to a resource at its server.
pub(crate) fn subscribe(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    server: &Arc<ConfiguredServer>,
    own: Option<Arc<str>>,
) {
    let dispatch = Arc::clone(dispatch);
    let call = Arc::clone(call);
    let server = Arc::clone(server);
    tokio::spawn(async move {
        let link = call.link.id;
        let uri = uri_of(&call, own.as_deref());
        let done = match server.upstream.session(&call.caller()).await {
            // The caller has cancelled it or left meanwhile.
            Ok(_) if !dispatch.with(|topic| topic.follows(link, &server.id, uri)) => return,
            Ok(session) => {
                session
                    .subscribe(link, call.link.participant.id.account(), uri)
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

/// Ends a subscription of the caller at its server.
pub(crate) fn unsubscribe(
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
pub(crate) fn settle(dispatch: &Arc<Dispatch>, call: &Arc<Call>, answer: Answer) {
    let mut answer = with_questions(call, answer);
    if let Some(sealed) = returns::with_sealed_state(dispatch, call, &answer) {
        answer = sealed;
    }
    let answer = tasks::rename_answer(dispatch, call, answer);
    let created = call.task.became();
    let written = created.and_then(|task| Some((journal::keeps(dispatch, task)?.clone(), task)));
    let Some((journal, task)) = written else {
        return reply(dispatch, call, &answer);
    };
    let task = Arc::clone(task);
    // The call is over, so that no effect can overtake this.
    let dispatch = Arc::clone(dispatch);
    let call = Arc::clone(call);
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
