//! Questions of servers to clients, and clients' notifications about them.

use std::sync::Arc;

use model::{Answer, LinkId, Notice, OperationId, Refusal, RefusalCode, Request};
use topic::{End, Receiver};
use upstream::{Session, tasks::answers};
use wire::mcp::{input, relay, task};

use crate::link::{Link, Questioned, Undelivered};
use crate::live::{Event, Live, ServerQuestion};
use crate::returns::{self, Why};
use crate::{call::Call, delivery, dispatch::Dispatch};

/// Sends a server's question to the client.
pub(crate) fn ask(
    dispatch: &Arc<Dispatch>,
    operation: OperationId,
    asked: &ServerQuestion,
    link: LinkId,
    to: &Receiver<Live>,
) {
    let server = &asked.server;
    let request = asked.question.request();
    let renamed = asked
        .task
        .as_ref()
        .and_then(|task| task.shown(&request.payload));
    let renamed = renamed.map(|payload| Request {
        payload,
        ..request.clone()
    });
    let respell = |own: &str| dispatch.respelled(link, server, own);
    let question = Questioned {
        operation,
        number: dispatch.context.question_number(operation),
        request: renamed.as_ref().unwrap_or(request),
        respell: &respell,
    };
    let sent = match to {
        Receiver::Call(call) => call.reply().ask(&question),
        Receiver::Link(link) => link.outlet.ask(&question),
    };
    let Err(why) = sent else { return };
    unasked(dispatch, operation, link, why);
    if let Receiver::Call(call) = to {
        dispatch.end_overrun(call, Err(why));
    }
}

/// Ends a question that its client cannot get. This is a step from inside an effect: the topic learns
/// here that the caller cannot be asked.
pub(crate) fn unasked(
    dispatch: &Arc<Dispatch>,
    operation: OperationId,
    link: LinkId,
    why: Undelivered,
) {
    let refusal = match why {
        Undelivered::Overrun => {
            Refusal::new(RefusalCode::Overloaded, "the client reads too slowly")
        }
        Undelivered::OtherForm => Refusal::new(
            RefusalCode::Unsupported,
            "the client cannot be asked this in its protocol revision",
        ),
    };
    dispatch.take(Event::Answer {
        link,
        operation,
        end: End::Failed(Box::new(refusal)),
    });
}

/// Answers a caller for now with the questions about its call, and with a sealed state to come back
/// with.
pub(crate) fn pause(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    round: u32,
    questions: &[(OperationId, Arc<ServerQuestion>)],
) {
    let reply = call.answer_for_now();
    let link = reply.request().link.id;
    let entry = |(operation, asked): &(OperationId, Arc<ServerQuestion>)| {
        asked.entry(*operation, &|own| {
            dispatch.respelled(link, &asked.server, own)
        })
    };
    let questions: Vec<_> = questions.iter().filter_map(entry).collect();
    let state = returns::seal(dispatch, call, Why::Asked(call.id, round));
    let result = input::required(&questions, &state);
    reply.settle(
        &delivery::own_answer(call.request.payload.form, result),
        &|_| None,
    );
}

/// Sends a client's answer to the server that asked.
pub(crate) fn settle(asked: &ServerQuestion, answer: Answer) {
    if let (Some(session), Some(made)) = (asked.session.upgrade(), task::made(&answer)) {
        session.note_client_task(&made.named.id);
    }
    let answer = match &asked.task {
        Some(task) => answers::of_client(task, asked.question.request(), answer),
        None => answer,
    };
    if let Err(refusal) = asked.question.answer(&answer) {
        tracing::debug!(server = %asked.server, %refusal, "a client's answer came too late");
    }
}

impl Dispatch {
    /// Passes a client's notification on: progress to the sessions that wait for its answer,
    /// changed roots to the sessions that it owns, the state of a task to the session whose
    /// question became it. Others are addressed to no server.
    pub fn client_notice(&self, link: &Link, notice: &Notice) {
        let sessions = match notice.method.as_str() {
            "notifications/progress" => self.asking(link.id),
            "notifications/roots/list_changed" => self.own_sessions(link),
            "notifications/tasks/status" => {
                let Some(report) = task::report(&notice.payload) else {
                    return;
                };
                let mut sessions = self.own_sessions(link);
                sessions.retain(|session| session.has_client_task(&report.named.id));
                sessions
            }
            _ => return,
        };
        let frame = relay::encode_notice(notice, None);
        for session in sessions.iter().filter(|session| session.era() == link.form) {
            if let Err(refusal) = session.notify(frame.clone()) {
                let server = session.upstream();
                let method = notice.method.as_str();
                tracing::debug!(server, method, %refusal, "a client's notification was not passed on");
            }
        }
    }

    /// The sessions on which servers wait for an answer of this link.
    fn asking(&self, link: LinkId) -> Vec<Arc<Session>> {
        let questions = self.with(|topic| topic.questions(link));
        let mut sessions: Vec<Arc<Session>> = Vec::new();
        for session in questions.iter().filter_map(|asked| asked.session.upgrade()) {
            if !sessions.iter().any(|known| Arc::ptr_eq(known, &session)) {
                sessions.push(session);
            }
        }
        sessions
    }

    /// The open sessions that this link owns.
    fn own_sessions(&self, link: &Link) -> Vec<Arc<Session>> {
        let servers = self.servers();
        let open = servers
            .iter()
            .filter_map(|server| server.upstream.open_session(&link.caller()));
        open.filter(|session| session.key().is_own()).collect()
    }
}

#[cfg(test)]
mod tests;
