//! Outlets of MCP clients' links: the way out for messages that belong to no request.

use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, OnceLock};

use auth::Participant;
use bytes::Bytes;
use control::Bounds;
use gateway::{Dispatch, Link, Outlet, Passed, Questioned, Undelivered};
use model::{Form, ListKind};
use tokio::sync::Notify;
use topic::Ended;
use wire::mcp::{ListNames, relay};
use wire::rpc;

use crate::liveness::Liveness;
use crate::stream::{Lifetime, Stream, Unsent};

/// The client's side of a link: its outlet, which its door sees too.
pub(crate) struct Home {
    form: Form,
    /// Last sign of life, and end.
    pub(crate) liveness: Liveness,
    /// The stream for messages that belong to no request. Over HTTP it is made when it is first
    /// needed.
    stream: OnceLock<Arc<Stream>>,
    /// The bounds of its streams.
    pub(crate) bounds: Bounds,
    /// Notified when the topic revokes the link.
    revoked: Arc<Notify>,
}

impl Home {
    /// Of a link over HTTP.
    pub(crate) fn new(form: Form, bounds: Bounds, now_ms: u64, revoked: &Arc<Notify>) -> Arc<Self> {
        let liveness = Liveness::new(now_ms);
        let stream = OnceLock::new();
        let revoked = Arc::clone(revoked);
        Arc::new(Self {
            form,
            liveness,
            stream,
            bounds,
            revoked,
        })
    }

    /// Of a link whose client reads everything on one stream (pipes, the 2024-11-05 pair).
    pub(crate) fn on(
        form: Form,
        stream: &Arc<Stream>,
        now_ms: u64,
        revoked: &Arc<Notify>,
    ) -> Arc<Self> {
        let bounds = stream.bounds.clone();
        let stream = OnceLock::from(Arc::clone(stream));
        let liveness = Liveness::new(now_ms);
        let revoked = Arc::clone(revoked);
        Arc::new(Self {
            form,
            liveness,
            stream,
            bounds,
            revoked,
        })
    }

    /// The stream for messages that belong to no request. It has ended if the link has.
    pub(crate) fn stream(&self) -> &Arc<Stream> {
        let stream = self
            .stream
            .get_or_init(|| Stream::new(0, Lifetime::Resumable, 0, &self.bounds));
        // Against `close`: one of the two sees the other.
        fence(Ordering::SeqCst);
        if self.liveness.has_ended() {
            stream.end();
        }
        stream
    }

    /// Whether a client reads that stream now.
    pub(crate) fn is_attached(&self) -> bool {
        self.stream.get().is_some_and(|stream| stream.is_attached())
    }

    /// The stream for what its requests do not bring. A modern client gets messages on its requests
    /// only.
    fn unasked(&self) -> Option<&Arc<Stream>> {
        match self.form {
            Form::Legacy => Some(self.stream()),
            Form::Modern => None,
        }
    }
}

/// A participant that may enter a topic.
pub(crate) struct Visitor {
    /// The topic.
    pub(crate) dispatch: Arc<Dispatch>,
    /// The participant.
    pub(crate) participant: Arc<Participant>,
}

/// A link over HTTP that has joined.
pub(crate) struct Joined {
    /// Its topic.
    pub(crate) dispatch: Arc<Dispatch>,
    /// The link.
    pub(crate) link: Arc<Link>,
    /// Its client's side.
    pub(crate) home: Arc<Home>,
}

impl Joined {
    /// Whether its client has a request open.
    pub(crate) fn is_busy(&self) -> bool {
        self.dispatch.with(|topic| topic.is_busy(self.link.id))
    }

    /// Lets the link leave.
    pub(crate) fn leave(&self) {
        self.dispatch.leave(&self.link);
    }
}

impl Outlet for Home {
    fn is_connected(&self) -> bool {
        match self.form {
            // A client that has never opened its stream may not want it.
            Form::Legacy => !self.stream.get().is_some_and(|stream| stream.was_left()),
            // It has no connection beside its requests.
            Form::Modern => false,
        }
    }

    fn notify(&self, notice: &Passed<'_>) {
        let Some(stream) = self.unasked() else { return };
        let frame = relay::encode_notice(notice.notice, notice.public);
        let sent = match notice.about {
            Some(about) => stream.send_latest(Bytes::copy_from_slice(about.as_bytes()), frame),
            None => stream.send(frame, notice.notice.latest.clone()),
        };
        log_overrun(sent);
    }

    fn ask(&self, question: &Questioned<'_>) -> Result<(), Undelivered> {
        let stream = self.unasked().ok_or(Undelivered::OtherForm)?;
        let Questioned {
            request,
            number,
            respell,
            ..
        } = *question;
        let frame = relay::encode_question(request, number, self.form, respell);
        let sent = stream.send(frame.ok_or(Undelivered::OtherForm)?, None);
        sent.map_err(|_| Undelivered::Overrun)
    }

    fn withdraw_question(&self, number: u64) {
        let Some(stream) = self.unasked() else { return };
        log_overrun(stream.send(question_withdrawn(number), None));
    }

    fn list_changed(&self, list: ListKind) {
        let Some(stream) = self.unasked() else { return };
        let method = ListNames::of(list.notified()).changed;
        let key = Bytes::from_static(method.as_bytes());
        log_overrun(stream.send_latest(key, rpc::notification(method, None)));
    }

    fn close(&self, why: Option<Ended>) {
        let revoked = why == Some(Ended::Revoked);
        self.liveness.end(revoked);
        // Against `stream`: one of the two sees the other.
        fence(Ordering::SeqCst);
        if let Some(stream) = self.stream.get() {
            stream.end();
        }
        if revoked {
            self.revoked.notify_one();
        }
    }
}

/// The notification that withdraws a question from its client.
pub(crate) fn question_withdrawn(number: u64) -> Bytes {
    let params = json::object(|params| {
        params.number("requestId", number);
    });
    rpc::notification("notifications/cancelled", Some(&params))
}

fn log_overrun(sent: Result<(), Unsent>) {
    match sent {
        Err(Unsent::Full) => tracing::info!("a client reads too slowly: its stream was ended"),
        Err(Unsent::NoStream | Unsent::Ended) | Ok(()) => {}
    }
}

#[cfg(test)]
mod tests {
    use platform::Shares;

    use super::*;

    #[test]
    fn a_stream_that_is_first_needed_after_the_end_of_its_link_has_ended() {
        let bounds = Bounds {
            limits: Arc::default(),
            held: Shares::new(1 << 20, 1 << 20).of("ann"),
        };
        let home = Home::new(Form::Legacy, bounds, 0, &Arc::default());
        home.close(Some(Ended::Revoked));
        assert!(home.stream().has_ended() && home.liveness.was_revoked());
    }
}
