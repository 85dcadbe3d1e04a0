//! Tasks that the gateway makes and follows for a call: its caller sees an ordinary, slow call.
//!
//! A server of 2025-11-25 is asked for the result (`tasks/result`), on whose stream it may ask the
//! caller; a modern one is asked for the state again and again.

use std::sync::{Arc, Weak};

use model::method::TASK_RESULT;
use model::{Answer, Form, Notice, Refusal, Request};
use upstream::tasks::look;
use upstream::{CallEvents, CallNumber, Outgoing, Question, Session};
use wire::mcp::task::{self, TaskReport};

use super::{relay, waiting::Waiting};
use crate::traces::{self, SentTrace};
use crate::{call::Call, dispatch::Dispatch};

/// Receives everything about a call that may become a task, and about the request that waits for
/// its result.
pub(crate) struct Follower {
    dispatch: Weak<Dispatch>,
    call: Arc<Call>,
    session: Arc<Session>,
    stage: Stage,
}

enum Stage {
    /// The call was sent, under this name of its tool if the caller wrote another.
    Called {
        own: Option<Arc<str>>,
        /// With the extension.
        declared: bool,
        /// The request, if it is not the call's own.
        changed: Option<Box<Request>>,
    },
    /// It has become a task.
    Became,
}

impl Follower {
    /// The receiver for a call that is sent by this session.
    pub(crate) fn new(
        dispatch: &Arc<Dispatch>,
        call: &Arc<Call>,
        session: &Arc<Session>,
        own: Option<&Arc<str>>,
        declared: bool,
        changed: Option<&Request>,
    ) -> Arc<Self> {
        let stage = Stage::Called {
            own: own.cloned(),
            declared,
            changed: changed.cloned().map(Box::new),
        };
        Arc::new(Self::at(dispatch, call, session, stage))
    }

    fn at(
        dispatch: &Arc<Dispatch>,
        call: &Arc<Call>,
        session: &Arc<Session>,
        stage: Stage,
    ) -> Self {
        let call = Arc::clone(call);
        let session = Arc::clone(session);
        Self {
            dispatch: Arc::downgrade(dispatch),
            call,
            session,
            stage,
        }
    }

    /// Sends the call again, to a modern server that insists on a task, if the call is still open.
    fn declare(&self, dispatch: &Arc<Dispatch>, own: Option<&Arc<str>>, changed: Option<&Request>) {
        let session = Arc::clone(&self.session);
        let own = own.cloned();
        let changed = changed.cloned();
        dispatch.proceed(self.call.id, move |dispatch, call| {
            let own = own.as_ref();
            let changed = changed.as_ref();
            let events = Self::new(dispatch, call, &session, own, true, changed);
            let request = changed.unwrap_or(&call.request);
            let traced = traces::sent(call, &session, own);
            let outgoing = Outgoing {
                own: own.map(|own| &**own),
                trace: traced.as_ref().map(SentTrace::outgoing),
                tasks: true,
                ..call.outgoing(request, CallNumber::of(call.id))
            };
            if let Err(refusal) = session.call(outgoing, events) {
                call.done(Err(refusal));
            }
        });
    }

    /// Follows the task that the call has become.
    fn follow(&self, dispatch: &Arc<Dispatch>, answer: &Answer, report: &TaskReport) {
        let call = &self.call;
        let session = &self.session;
        // What a server answers was delivered to it.
        let Some(delivered) = call.delivered.get() else {
            return;
        };
        let created = relay::create(dispatch, call, session, delivered, &answer.payload, report);
        let task = match created {
            Ok(task) => task,
            Err(refusal) => return call.done(Err(refusal)),
        };
        let number =
            (session.era() == Form::Legacy).then(|| CallNumber::of(dispatch.context.operation()));
        call.task.set_followed(&task, number);
        let Some(number) = number else {
            if !dispatch.with(|topic| topic.is_open(call.id)) {
                // It was cancelled before the task was known, and the topic has cancelled the task.
                return;
            }
            let dispatch = Arc::clone(dispatch);
            let call = Arc::clone(call);
            tokio::spawn(async move {
                let end = look::wait(&Waiting(&dispatch, &call), &task).await;
                ended(&dispatch, &call, end);
            });
            return;
        };
        let request = task::request(TASK_RESULT.name, &task.origin.own, session.era());
        let session = Arc::clone(session);
        // In order with a cancellation: it finds this request at the server, or keeps it from it.
        dispatch.proceed(call.id, move |dispatch, call| {
            let events = Self::at(dispatch, call, &session, Stage::Became);
            let outgoing = call.outgoing(&request, number);
            if let Err(refusal) = session.call(outgoing, Arc::new(events)) {
                ended(dispatch, call, Err(refusal));
            }
        });
    }
}

/// Ends a call whose task has ended, or cannot be followed any more.
fn ended(dispatch: &Arc<Dispatch>, call: &Call, end: Result<Answer, Refusal>) {
    // A call that was cancelled has cancelled its task, which must not happen twice.
    if !dispatch.with(|topic| topic.is_open(call.id)) {
        return;
    }
    // The task ends with its call: the caller knows of none.
    call.done(end.map(|answer| {
        let payload = task::unrelated(&answer.payload).unwrap_or(answer.payload);
        Answer { payload, ..answer }
    }));
}

impl CallEvents for Follower {
    fn notice(&self, notice: Notice) {
        self.call.notice(notice);
    }

    fn question(&self, question: Question) {
        self.call.question(question);
    }

    fn done(&self, end: Result<Answer, Refusal>) {
        let Some(dispatch) = self.dispatch.upgrade() else {
            return self.call.done(end);
        };
        match (&self.stage, end) {
            (Stage::Became, end) => ended(&dispatch, &self.call, end),
            (
                Stage::Called {
                    own,
                    declared,
                    changed,
                },
                Ok(answer),
            ) => match task::made(&answer) {
                Some(report) => self.follow(&dispatch, &answer, &report),
                // It was refused before it ran: a server that insists on a task gets the
                // declaration.
                None if !declared && task::wants_extension(&answer) => {
                    self.declare(&dispatch, own.as_ref(), changed.as_deref());
                }
                None => self.call.done(Ok(answer)),
            },
            (Stage::Called { .. }, Err(refusal)) => self.call.done(Err(refusal)),
        }
    }
}
