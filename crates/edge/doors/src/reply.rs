//! Replies of calls: answers, notifications and questions, encoded once and handed to a sink.
//!
//! What belongs to one call comes by one thread at a time, and nothing follows its end: a stream that
//! many calls share needs no place for each.

use std::sync::Arc;

use bytes::Bytes;
use control::Bounds;
use gateway::{Call, Passed, Questioned, Reply, Respell, Undelivered};
use model::{Answer, ListKind, Refusal, RefusalCode};
use wire::mcp::{refusal, relay};
use wire::rpc::Id;

use crate::outlet::question_withdrawn;
use crate::stream::{Stream, Unsent};
use crate::unread::too_many;

/// Takes the encoded messages of one request towards its client.
pub(crate) trait Sink: Send + Sync {
    /// Takes a notification or a question. `latest` is what makes an older message stale.
    ///
    /// # Errors
    /// Why it was not taken.
    fn send(&self, frame: Bytes, latest: Option<Bytes>) -> Result<(), Unsent>;
    /// Takes the answer, with the code if it is an error.
    fn answer(&self, frame: Bytes, error: Option<i64>);
    /// Learns why the request is refused, before the answer that says so.
    fn refused(&self, _: &Refusal) {}
    /// No answer follows.
    fn skip(&self);
    /// The bounds of messages that wait.
    fn bounds(&self) -> &Bounds;
}

impl Sink for Arc<Stream> {
    fn send(&self, frame: Bytes, latest: Option<Bytes>) -> Result<(), Unsent> {
        Stream::send(self, frame, latest)
    }

    fn answer(&self, frame: Bytes, error: Option<i64>) {
        self.answer_with(frame, error);
    }

    fn skip(&self) {
        Stream::skip(self);
    }

    fn bounds(&self) -> &Bounds {
        &self.bounds
    }
}

/// The place of one request's answer in the stream of a pipe. A pipe that its client has closed ends
/// after such answers: the topic is done with a call before its answer is encoded.
pub(crate) struct Owed(Arc<Stream>);

impl Owed {
    /// A place in this stream.
    pub(crate) fn by(out: &Arc<Stream>) -> Self {
        out.owe();
        Self(Arc::clone(out))
    }
}

impl Sink for Owed {
    fn send(&self, frame: Bytes, latest: Option<Bytes>) -> Result<(), Unsent> {
        self.0.send(frame, latest)
    }

    fn answer(&self, frame: Bytes, error: Option<i64>) {
        self.0.answer_with(frame, error);
        self.0.settle_owed();
    }

    fn skip(&self) {
        self.0.settle_owed();
    }

    fn bounds(&self) -> &Bounds {
        &self.0.bounds
    }
}

/// The reply of a call whose messages go to one sink.
pub(crate) struct SinkReply<S>(pub(crate) S);

impl<S: Sink> SinkReply<S> {
    /// Sends a notification or a question. A call that needs a stream for it and cannot have one is
    /// refused.
    fn send(&self, call: &Call, frame: Bytes, latest: Option<Bytes>) -> Result<(), Unsent> {
        let sent = self.0.send(frame, latest);
        if sent == Err(Unsent::NoStream) {
            refuse(&self.0, call, &no_stream());
        }
        sent
    }
}

impl<S: Sink> Reply for SinkReply<S> {
    fn settle(&self, call: &Call, answer: &Answer, respell: &Respell<'_>) {
        settle(&self.0, call, answer, respell);
    }

    fn refuse(&self, call: &Call, refusal: &Refusal) {
        refuse(&self.0, call, refusal);
    }

    fn abandon(&self, _: &Call) {
        self.0.skip();
    }

    fn notify(&self, call: &Call, notice: &Passed<'_>) -> Result<(), Undelivered> {
        let frame = relay::encode_notice(notice.notice, notice.public);
        delivered(self.send(call, frame, notice.notice.latest.clone()))
    }

    fn ask(&self, call: &Call, question: &Questioned<'_>) -> Result<(), Undelivered> {
        let Questioned {
            request,
            number,
            respell,
            ..
        } = *question;
        let frame = relay::encode_question(request, number, call.link.form, respell);
        self.send(call, frame.ok_or(Undelivered::OtherForm)?, None)
            .map_err(|_| Undelivered::Overrun)
    }

    fn withdraw_question(&self, _: &Call, number: u64) {
        // A client that is too slow for this is too slow for the answer too, and loses that.
        let _ = self.0.send(question_withdrawn(number), None);
    }

    fn list_changed(&self, _: &Call, _: ListKind) -> Result<(), Undelivered> {
        Ok(())
    }
}

/// The id that the client gave its request. Every request that comes in by a door has one.
pub(crate) fn id_of(call: &Call) -> Option<&Id> {
    call.tag.as_ref().map(|tag| &tag.id)
}

/// Encodes an answer for its caller.
pub(crate) fn settle(sink: &impl Sink, call: &Call, answer: &Answer, respell: &Respell<'_>) {
    let Some(id) = id_of(call) else {
        return sink.skip();
    };
    let encoded = relay::encode_answer(
        answer,
        call.request.method.as_str(),
        call.link.form,
        id,
        respell,
    );
    // What is kept on the account counts once. A caller that reads none of such answers has one
    // more than the account admits.
    let more = if call.answer_is_kept() {
        0
    } else {
        encoded.frame.len()
    };
    if sink.bounds().held.has_room(more) {
        return sink.answer(encoded.frame, encoded.error);
    }
    refuse(sink, call, &too_many());
}

/// Encodes a refusal for its caller.
pub(crate) fn refuse(sink: &impl Sink, call: &Call, refusal: &Refusal) {
    let target = call.request.target.as_ref().map(model::Target::as_str);
    let encoded = refusal::encode(
        refusal,
        call.link.form,
        call.request.method.as_str(),
        target,
    );
    sink.refused(refusal);
    sink.answer(encoded.answer(id_of(call)), Some(encoded.code));
}

/// The refusal of a request for whose stream its session has no room.
pub(crate) fn no_stream() -> Refusal {
    Refusal::new(
        RefusalCode::Overloaded,
        "too many requests are open in this session",
    )
}

/// A message for a client that has left needs no delivery: its call ends by itself.
pub(crate) fn delivered(sent: Result<(), Unsent>) -> Result<(), Undelivered> {
    match sent {
        Err(Unsent::Full) => {
            tracing::info!("a client reads too slowly: its request is cancelled");
            Err(Undelivered::Overrun)
        }
        Err(Unsent::NoStream) => Err(Undelivered::Overrun),
        Err(Unsent::Ended) | Ok(()) => Ok(()),
    }
}
