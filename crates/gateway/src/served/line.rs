//! One conversation with a participant that serves: what was asked in which envelope, and what of what it says is about it.
//!
//! Must not know who may ask, or how an envelope travels.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use client::{CustomTransport, Inbox, LinkError, SendError, SendMeta};
use model::{KindRef, LinkId, ParticipantId};
use platform::Mutex;
use wire::mcp::Params;
use wire::mcpx::check::{Act, answers, strict};
use wire::mcpx::{self, Draft, Envelope, Head, kind_of};
use wire::rpc::{Message, Shape};

use super::mail::Mail;

/// Envelopes that are over and whose late answers are still told from others: nobody hears them.
pub(crate) const LATE_MAX: usize = 1024;

/// What one participant was asked in this topic, in whatever conversation: what is open, and the last that is over. It
/// outlives them all, so that what answers an older one is told from others.
#[derive(Default)]
pub(crate) struct Late(Mutex<Asks>);

#[derive(Default)]
struct Asks {
    open: HashSet<Arc<str>>,
    over: VecDeque<Arc<str>>,
}

impl Late {
    fn begin(&self, envelope: Arc<str>) {
        self.0.lock().open.insert(envelope);
    }

    fn end(&self, envelope: Arc<str>) {
        let mut asks = self.0.lock();
        asks.open.remove(&envelope);
        if asks.over.len() >= LATE_MAX {
            asks.over.pop_front();
        }
        asks.over.push_back(envelope);
    }

    /// Whether it was asked this.
    pub(crate) fn holds(&self, envelope: &str) -> bool {
        let asks = self.0.lock();
        asks.open.contains(envelope) || asks.over.iter().any(|late| **late == *envelope)
    }
}

/// Notifications about no call that a server may tell everybody, or the gateway.
const NOTICES: [&str; 4] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
];
const RESPONSE: &str = "mcp/response:";
const NOTICE: &str = "mcp/request:notifications/";

/// What became of an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It is about nothing that is open here.
    Nothing,
    /// It was taken.
    Taken,
    /// It is no answer that can be used; why.
    Wrong(String),
}

/// One request that is open.
struct Asked {
    number: u64,
    /// Who asked.
    from: Arc<str>,
    kind: String,
}

#[derive(Default)]
struct Table {
    /// By envelope id.
    open: HashMap<Arc<str>, Asked>,
    /// The envelope of each open request.
    envelopes: HashMap<u64, Arc<str>>,
    closed: bool,
}

impl Table {
    fn close(&mut self, envelope: &str, late: &Late) -> Option<Asked> {
        let (id, asked) = self.open.remove_entry(envelope)?;
        self.envelopes.remove(&asked.number);
        late.end(id);
        Some(asked)
    }

    /// False if it was closed already.
    fn end(&mut self, late: &Late) -> bool {
        let open = !std::mem::replace(&mut self.closed, true);
        self.open.drain().for_each(|(id, _)| late.end(id));
        self.envelopes.clear();
        open
    }
}

/// One conversation.
pub(super) struct Line {
    id: ParticipantId,
    link: LinkId,
    envelope_bytes_max: usize,
    mail: Arc<dyn Mail>,
    inbox: Arc<dyn Inbox>,
    late: Arc<Late>,
    table: Mutex<Table>,
}

impl Line {
    pub(super) fn new(
        id: ParticipantId,
        link: LinkId,
        envelope_bytes_max: usize,
        mail: Arc<dyn Mail>,
        inbox: Arc<dyn Inbox>,
        late: Arc<Late>,
    ) -> Self {
        Self { id, link, envelope_bytes_max, mail, inbox, late, table: Mutex::default() }
    }

    /// The participant has left: whatever is open gets no answer.
    pub(super) fn hang_up(&self) {
        let open = self.table.lock().end(&self.late);
        if open {
            self.inbox.closed(LinkError::Disconnected);
        }
    }

    pub(super) fn link(&self) -> LinkId {
        self.link
    }

    pub(super) fn is_open(&self, envelope: &str) -> bool {
        self.table.lock().open.contains_key(envelope)
    }

    /// Whether it is between the server and whoever asked it: about an envelope that is open and to whoever asked, or
    /// about one that is over.
    pub(super) fn is_private(&self, envelope: &Envelope) -> bool {
        let kind = envelope.kind();
        let Some(about) = envelope.correlation_id() else { return false };
        if !kind.starts_with(RESPONSE) && !kind.starts_with(NOTICE) {
            return false;
        }
        match self.table.lock().open.get(about) {
            Some(asked) => envelope.to().any(|to| *to == *asked.from),
            None => self.late.holds(about),
        }
    }

    /// Takes what the server says.
    pub(super) fn hear(&self, envelope: &Envelope) -> Heard {
        let kind = envelope.kind();
        if kind.starts_with(RESPONSE) {
            self.answered(envelope)
        } else if kind.starts_with(NOTICE) {
            self.noticed(envelope)
        } else {
            Heard::Nothing
        }
    }

    fn answered(&self, envelope: &Envelope) -> Heard {
        let Some(about) = envelope.correlation_id() else { return Heard::Nothing };
        let asked = {
            let mut table = self.table.lock();
            let Some(asked) = table.open.get(about) else { return Heard::Nothing };
            if !envelope.to().any(|to| *to == *asked.from) {
                return Heard::Wrong("it is not to whoever asked".to_owned());
            }
            table.close(about, &self.late)
        };
        let Some(asked) = asked else { return Heard::Nothing };
        match fits(envelope, &asked) {
            Ok(frame) => {
                let _ = self.inbox.frame(frame, Some(asked.number));
                Heard::Taken
            }
            Err(why) => {
                self.inbox.failed(asked.number, LinkError::Malformed(why.clone()));
                Heard::Wrong(why)
            }
        }
    }

    /// A notification: about an open request, or about no call to everybody or the gateway.
    fn noticed(&self, envelope: &Envelope) -> Heard {
        let about = envelope.correlation_id();
        let number = about.and_then(|about| {
            let table = self.table.lock();
            let asked = table.open.get(about).filter(|asked| envelope.to().any(|to| *to == *asked.from));
            asked.map(|asked| asked.number)
        });
        let for_us = envelope.is_broadcast() || envelope.to().any(|to| to == model::GATEWAY);
        if number.is_none() && !for_us {
            return Heard::Nothing;
        }
        match strict(envelope.kind(), envelope.payload_bytes()) {
            Ok(Act::Request(call)) if call.is_notification() => {
                if number.is_none() && !NOTICES.contains(&call.method()) {
                    return Heard::Nothing;
                }
                let _ = self.inbox.frame(call.message().frame().clone(), number);
                Heard::Taken
            }
            Ok(_) => Heard::Nothing,
            Err(why) => Heard::Wrong(why.to_string()),
        }
    }

    /// Whose a message is, and about which envelope: a cancellation is its request's.
    fn of(&self, params: &Params<'_>, from: Option<Arc<str>>) -> (Arc<str>, Option<Arc<str>>) {
        let table = self.table.lock();
        let cancels = params.message().method() == "notifications/cancelled";
        let number = params.request_id().filter(|_| cancels).and_then(|id| id.as_number());
        let cancelled = number.and_then(|number| table.envelopes.get(&number));
        match cancelled.and_then(|about| Some((about, table.open.get(about)?))) {
            Some((about, asked)) => (Arc::clone(&asked.from), Some(Arc::clone(about))),
            None => (from.unwrap_or_else(|| Arc::from(model::GATEWAY)), None),
        }
    }
}

/// The answer in an envelope, if it answers what was asked.
fn fits(envelope: &Envelope, asked: &Asked) -> Result<Bytes, String> {
    let response = KindRef::parse(envelope.kind()).map_err(|why| why.to_string())?;
    let request = KindRef::parse(&asked.kind).map_err(|why| why.to_string())?;
    if !answers(response, request) {
        return Err(format!("`{}` is no answer to `{}`", envelope.kind(), asked.kind));
    }
    let Act::Answer(message) =
        strict(envelope.kind(), envelope.payload_bytes()).map_err(|why| why.to_string())?
    else {
        return Err("it is no answer".to_owned());
    };
    if message.id().and_then(|id| id.as_number()) != Some(asked.number) {
        return Err("its `id` is not the request's".to_owned());
    }
    Ok(message.frame().clone())
}

impl Drop for Line {
    fn drop(&mut self) {
        let _ = self.table.lock().end(&self.late);
    }
}

impl CustomTransport for Line {
    fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), SendError> {
        let Ok(message) = Message::read(frame) else { return Err(SendError::Closed) };
        if matches!(message.shape(), Shape::Result | Shape::Error) {
            // It is asked, and asks nobody: its questions are not taken.
            return Err(SendError::Closed);
        }
        let Ok(params) = Params::read(&message) else { return Err(SendError::Closed) };
        let (from, about) = self.of(&params, meta.from);
        let method = message.method();
        let target = params.target().map(wire::mcp::Target::text);
        // Without a name that could stand in a kind, the kind is short.
        let kind = kind_of(Head::Request, method, target).unwrap_or_else(|_| format!("mcp/request:{method}"));
        let (id, ts) = self.mail.stamp();
        let to = [self.id.as_str()];
        let draft = Draft {
            id: &id,
            ts: Some(&ts),
            from: &from,
            to: &to,
            kind: &kind,
            correlation_id: about.as_deref(),
            payload: message.frame(),
        };
        let envelope = mcpx::envelope(&draft);
        if envelope.len() > self.envelope_bytes_max {
            return Err(SendError::TooLarge);
        }
        {
            let mut table = self.table.lock();
            if table.closed {
                return Err(SendError::Closed);
            }
            if let Some(number) = meta.request {
                let id: Arc<str> = id.into();
                table.envelopes.insert(number, Arc::clone(&id));
                self.late.begin(Arc::clone(&id));
                table.open.insert(id, Asked { number, from, kind });
            }
        }
        self.mail.whisper(self.link, &envelope);
        Ok(())
    }

    fn cancel(&self, request: u64) {
        let mut table = self.table.lock();
        if let Some(envelope) = table.envelopes.get(&request).cloned() {
            table.close(&envelope, &self.late);
        }
    }

    fn close(&self) {
        let _ = self.table.lock().end(&self.late);
    }
}
