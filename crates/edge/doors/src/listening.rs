//! Replies of listen requests (MCP 2026-07-28, "Subscriptions"): the acknowledgement first, then
//! what came before it.

use bytes::Bytes;
use gateway::{Call, Passed, Questioned, Reply, Respell, Undelivered};
use json::Splice;
use model::{Answer, ListKind, Refusal, RefusalCode};
use platform::{Mutex, Taken};
use wire::mcp::{ListNames, Params, listen, meta, relay};
use wire::rpc::{self, Id, Message};

use crate::reply::{self, Sink, delivered, id_of};

const TASK: &str = "notifications/tasks";

/// Subject of a notification.
#[derive(Debug, PartialEq, Eq)]
enum About {
    /// A list.
    List(ListKind),
    /// The resource with this URI.
    Resource(Box<str>),
    /// The task with this id.
    Task(Box<str>),
    /// Anything else.
    Other,
}

/// Notifications that came before the acknowledgement: the latest about each thing, so never more
/// than the filter names.
#[derive(Default)]
struct Early {
    waiting: Vec<EarlyNotification>,
    /// There was no room for one of them.
    lost: bool,
}

/// A notification that waits for the acknowledgement.
struct EarlyNotification {
    about: About,
    frame: Bytes,
    held: Taken,
}

enum State {
    /// The acknowledgement has not come.
    Early(Early),
    /// The client gets notifications. Of tasks only those about these ones pass.
    Open(Vec<String>),
    /// The request was answered.
    Over,
}

/// The reply of a listen request.
pub(crate) struct ListenReply<S> {
    /// Sink of its messages.
    pub(crate) sink: S,
    state: Mutex<State>,
}

impl<S: Sink> ListenReply<S> {
    /// The reply of a listen request that is not acknowledged.
    pub(crate) fn new(sink: S) -> Self {
        Self {
            sink,
            state: Mutex::new(State::Early(Early::default())),
        }
    }

    /// Sends a notification, or keeps it until the acknowledgement.
    fn pass(&self, about: About, frame: Bytes) -> Result<(), Undelivered> {
        let mut state = self.state.lock();
        match &mut *state {
            State::Over => Ok(()),
            State::Open(tasks) if !is_agreed(&about, tasks) => Ok(()),
            State::Open(_) => delivered(self.sink.send(frame, None)),
            State::Early(early) => {
                early
                    .waiting
                    .retain(|other| about == About::Other || other.about != about);
                match self.sink.bounds().held.take(frame.len()) {
                    Ok(held) => early.waiting.push(EarlyNotification { about, frame, held }),
                    Err(_) => early.lost = true,
                }
                Ok(())
            }
        }
    }

    /// Sends the acknowledgement, then what waited for it as far as the gateway agreed to it.
    /// `None`, and nothing is sent, if something before it was lost.
    fn acknowledge(&self, frame: Bytes, tasks: Vec<String>) -> Option<Result<(), Undelivered>> {
        let mut state = self.state.lock();
        let State::Early(early) = &mut *state else {
            return Some(Ok(()));
        };
        let Early { waiting, lost } = std::mem::take(early);
        if lost {
            *state = State::Over;
            return None;
        }
        let mut sent = self.sink.send(frame, None);
        for EarlyNotification { about, frame, held } in waiting {
            // The sink enters it in the account.
            drop(held);
            if sent.is_ok() && is_agreed(&about, &tasks) {
                sent = self.sink.send(frame, None);
            }
        }
        *state = State::Open(tasks);
        Some(delivered(sent))
    }

    fn refuse_lost(&self, call: &Call) -> Result<(), Undelivered> {
        let what = "more came before the listen request was acknowledged than there is room for";
        reply::refuse(
            &self.sink,
            call,
            &Refusal::new(RefusalCode::Overloaded, what).hint("send it again"),
        );
        Err(Undelivered::Overrun)
    }

    /// Ends the request; false if it was over.
    fn end_once(&self) -> bool {
        !matches!(
            std::mem::replace(&mut *self.state.lock(), State::Over),
            State::Over
        )
    }
}

impl<S: Sink> Reply for ListenReply<S> {
    fn settle(&self, call: &Call, answer: &Answer, respell: &Respell<'_>) {
        if self.end_once() {
            reply::settle(&self.sink, call, answer, respell);
        }
    }

    fn refuse(&self, call: &Call, refusal: &Refusal) {
        if self.end_once() {
            reply::refuse(&self.sink, call, refusal);
        }
    }

    fn abandon(&self, call: &Call) {
        match id_of(call) {
            Some(id) if self.end_once() => {
                self.sink.answer(rpc::result(id, &listen::ended(id)), None)
            }
            Some(_) => {}
            None => self.sink.skip(),
        }
    }

    fn notify(&self, call: &Call, notice: &Passed<'_>) -> Result<(), Undelivered> {
        let Some(id) = id_of(call) else { return Ok(()) };
        let frame = tagged(&relay::encode_notice(notice.notice, notice.public), id);
        if let Some(tasks) = listen::agreed_tasks(notice.notice) {
            return self
                .acknowledge(frame, tasks)
                .unwrap_or_else(|| self.refuse_lost(call));
        }
        let about = match (notice.notice.method.as_str(), notice.about) {
            (TASK, Some(task)) => About::Task(task.into()),
            (_, Some(uri)) => About::Resource(uri.into()),
            (_, None) => About::Other,
        };
        self.pass(about, frame)
    }

    fn ask(&self, _: &Call, _: &Questioned<'_>) -> Result<(), Undelivered> {
        Err(Undelivered::OtherForm)
    }

    fn withdraw_question(&self, _: &Call, _: u64) {}

    fn list_changed(&self, call: &Call, list: ListKind) -> Result<(), Undelivered> {
        let (Some(id), list) = (id_of(call), list.notified()) else {
            return Ok(());
        };
        self.pass(
            About::List(list),
            tagged(
                &rpc::notification(ListNames::of(list).changed, Some(b"{}")),
                id,
            ),
        )
    }
}

fn is_agreed(about: &About, tasks: &[String]) -> bool {
    match about {
        About::Task(task) => tasks.iter().any(|agreed| **agreed == **task),
        About::List(_) | About::Resource(_) | About::Other => true,
    }
}

/// A notification with the id of the listen request on which it is sent.
fn tagged(frame: &Bytes, id: &Id) -> Bytes {
    let Ok(message) = Message::read(frame.clone()) else {
        return frame.clone();
    };
    let Ok(params) = Params::read(&message) else {
        return frame.clone();
    };
    let mut splice = Splice::default();
    params
        .edit()
        .set_meta(meta::SUBSCRIPTION_ID, id.raw())
        .finish(&mut splice);
    message.edited(&splice)
}

#[cfg(test)]
mod tests;
