//! A call of an MCP client as its topic is shown it (design, section 4, "What others see"): who asked whom for what, and how
//! it ended.
//!
//! Owns how that is written. Must not know who watches, nor when.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use json::{Member, ObjectEdit, Span, Splice, members, text};
use model::{Era, OperationId, Outcome, ParticipantId};
use room::Audience;
use wire::mcp::result::{ResultType, ResultView};
use wire::mcp::translate;
use wire::mcpx::{self, Draft, Head, KIND_BYTES_MAX, kind_of, shown};
use wire::rpc::{self, Id, Message, Shape};

use crate::spell;

/// What is said of a call that was let through.
const ADMITTED: &str = "admitted";
/// What is said of an answer that is a question to the client's user: it is shown to nobody else.
const INPUT_REQUIRED: &str = "input_required";
/// How the methods begin that are about a task.
const TASKS: &str = "tasks/";
/// The members of modern params that hold what a user answered, and what that belongs to.
const ANSWERS: [&str; 2] = ["inputResponses", "requestState"];

/// One call that was shown. Its envelope has the operation's id.
pub(crate) struct Sight {
    id: OperationId,
    from: ParticipantId,
    to: ParticipantId,
    method: Box<str>,
    /// Under the upstream's own spelling.
    context: Option<Arc<str>>,
    over: AtomicBool,
}

/// Id and time of an envelope that shows something.
pub(crate) struct Stamp {
    /// The envelope's id.
    pub(crate) id: String,
    /// When it happened, as RFC 3339.
    pub(crate) ts: String,
}

/// What is shown of a request beyond its kind.
pub(crate) struct Asked {
    /// As the client wrote it.
    pub(crate) message: Message,
    /// The era in which it did.
    pub(crate) era: Era,
    /// The upstream's own name or URI, if it is spelled otherwise there.
    pub(crate) own: Option<Arc<str>>,
}

/// What a server has answered.
pub(crate) struct Answered {
    /// As it wrote it.
    pub(crate) message: Message,
    /// The era in which it did.
    pub(crate) era: Era,
    /// Whether more is shown of it than that it came.
    pub(crate) whole: bool,
}

impl Sight {
    /// A call that is not over.
    pub(crate) fn new(
        id: OperationId,
        [from, to]: [&ParticipantId; 2],
        method: &str,
        context: Option<Arc<str>>,
    ) -> Arc<Self> {
        let (from, to, method) = (from.clone(), to.clone(), method.into());
        Arc::new(Self { id, from, to, method, context, over: AtomicBool::new(false) })
    }

    /// Notes that its end is shown; true the first time.
    pub(crate) fn ends(&self) -> bool {
        !self.over.swap(true, Ordering::AcqRel)
    }

    /// The request: whole, if there is something to be shown beyond its kind.
    pub(crate) fn request(&self, ts: &str, asked: Option<&Asked>) -> Option<room::Message> {
        let whole = asked.and_then(|asked| whole_request(asked, &self.method));
        let short = || shown::request(&self.method, self.context(), ADMITTED);
        let payload = whole.unwrap_or_else(short);
        let stamp = Stamp { id: self.id.to_string(), ts: ts.to_owned() };
        // Whoever is asked hears the request itself.
        let reach = Audience::Observers { except: Some(self.to.clone()) };
        self.said(&stamp, Head::Request, [&self.from, &self.to], &payload, reach)
    }

    /// How it ended. What is no answer of the upstream's the gateway says in its own name.
    pub(crate) fn response(
        &self,
        stamp: &Stamp,
        outcome: Outcome,
        answered: Option<&Answered>,
    ) -> Option<room::Message> {
        let asks = answered.is_some_and(|answered| is_question(&answered.message, &self.method));
        let verdict = match outcome {
            _ if asks => INPUT_REQUIRED,
            Outcome::Ok => "ok",
            Outcome::Error => "error",
            Outcome::Refused => "refused",
            Outcome::Cancelled => "cancelled",
        };
        let whole = answered.filter(|answered| answered.whole && !asks);
        let whole = whole.map(|answered| whole_response(answered, &self.method));
        let short = || shown::response(&Id::number(1), outcome == Outcome::Ok, verdict);
        let payload = whole.unwrap_or_else(short);
        let gateway = ParticipantId::gateway();
        let from = match outcome {
            Outcome::Ok | Outcome::Error => &self.to,
            Outcome::Refused | Outcome::Cancelled => &gateway,
        };
        self.said(stamp, Head::Response, [from, &self.from], &payload, Audience::Observers { except: None })
    }

    fn said(
        &self,
        stamp: &Stamp,
        head: Head,
        [from, to]: [&ParticipantId; 2],
        payload: &[u8],
        reach: Audience,
    ) -> Option<room::Message> {
        let kind = kind_of(head, &self.method, self.context()).ok()?;
        let correlation = self.id.to_string();
        let draft = Draft {
            id: &stamp.id,
            ts: Some(&stamp.ts),
            from: from.as_str(),
            to: &[to.as_str()],
            kind: &kind,
            correlation_id: (head == Head::Response).then_some(correlation.as_str()),
            payload,
        };
        let envelope = mcpx::envelope(&draft);
        Some(room::Message {
            link: None,
            envelope,
            to: Box::new([to.as_str().into()]),
            kind: kind.into(),
            audience: reach,
        })
    }

    /// The target, where a kind has room for it.
    fn context(&self) -> Option<&str> {
        let head = Head::Response.as_str().len() + self.method.len() + 2;
        self.context.as_deref().filter(|context| head + context.len() <= KIND_BYTES_MAX)
    }
}

/// A request in the form that MCPx has, without what a user answered.
fn whole_request(asked: &Asked, method: &str) -> Option<Bytes> {
    let params = spell::legacy_params(asked.era, &asked.message, asked.own.as_deref())?;
    let raw = params.as_bytes();
    let members = members(raw, Span::all(raw)).ok()?;
    let mut splice = Splice::new();
    let mut edit = ObjectEdit::new(&members);
    ANSWERS.into_iter().for_each(|key| {
        edit.remove(key);
    });
    edit.finish(&mut splice);
    let params = splice.apply_within(raw, Span::all(raw));
    Some(rpc::request(&Id::number(1), method, Some(&params)))
}

/// An answer in the form that MCPx has, to the id that the request was shown under.
fn whole_response(answered: &Answered, method: &str) -> Bytes {
    let (message, mut splice) = (&answered.message, Splice::new());
    if message.id_span().is_some() {
        message.set_id(&mut splice, &Id::number(1));
    }
    match (answered.era, message.shape()) {
        (Era::Modern, Shape::Result) => translate::result(message, method, Era::Legacy, &mut splice),
        (Era::Modern, _) => translate::error(message, method, Era::Legacy, &mut splice),
        (Era::Legacy, _) => {}
    }
    message.edited(&splice)
}

/// Whether the client's user is asked something first: by the answer itself (2026-07-28, `resultType`), or by the task
/// that it is about (tasks extension, `inputRequests` and `status`).
fn is_question(message: &Message, method: &str) -> bool {
    let Ok(view) = ResultView::read(message) else { return false };
    let asks = |requests: Member<'_>| {
        requests.raw != b"null" && !members(message.frame(), requests.span).is_ok_and(|all| all.is_empty())
    };
    let waits = || {
        let status = view.get("status").and_then(|status| text(status.raw));
        method.starts_with(TASKS) && status.as_deref() == Some(INPUT_REQUIRED)
    };
    view.result_type() == ResultType::InputRequired || view.get("inputRequests").is_some_and(asks) || waits()
}
