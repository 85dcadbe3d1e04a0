//! Handles of a running topic: what the gateway hands to the topic and gets back.

use std::sync::{Arc, Weak};

use model::method::CALL_TOOL;
use model::{Answer, Coding, Form, Notice, OperationId, Outcome, ParticipantId};
use topic::Handles;
use upstream::{Manifest, Question, Session, Upstream, dial_in::DialIn};
use wire::mcp::{input, relay};
use wire::mcpx::Envelope;

use crate::proposals::content::{Proposed, Ruling};
use crate::work::Work;
use crate::{call::Call, callers::Callers, incoming::Tag, link::Link};
use upstream::tasks::ServerTask;

/// The handles of a running topic.
#[derive(Debug, Clone, Copy)]
pub enum Live {}

impl Handles for Live {
    type Link = Arc<Link>;
    type Server = Server;
    type Call = Arc<Call>;
    type Question = Arc<ServerQuestion>;
    type Tag = Tag;
    type Answer = Answer;
    type Notice = Arc<Notice>;
    type Message = Arc<Envelope>;
    type Content = Arc<Proposed>;
    type Task = Arc<ServerTask>;
    type Work = Work;
    type Ruling = Arc<Ruling>;

    fn is_same_request(one: &Arc<Proposed>, other: &Arc<Proposed>) -> bool {
        one.is_same_request(other)
    }

    fn kept_bytes(ruling: Option<&Arc<Ruling>>, answer: Option<&Answer>) -> usize {
        let texts = ruling.map(|ruling| [&ruling.params, &ruling.note]);
        let texts = texts.into_iter().flatten().flatten();
        texts.map(String::len).sum::<usize>()
            + answer.map_or(0, |answer| answer.payload.bytes.len())
    }

    fn note(ruling: &Arc<Ruling>) -> Option<Arc<str>> {
        ruling.note.as_deref().map(Arc::from)
    }

    fn is_success(answer: &Answer) -> bool {
        is_plain_result(answer)
    }

    fn notice_bytes(notice: &Arc<Notice>) -> usize {
        notice.payload.bytes.len()
    }
}

/// Whether an answer is a result that is complete and says of no error: not that a task has begun, or
/// that the caller is asked something.
pub fn is_plain_result(answer: &Answer) -> bool {
    let answer = relay::convert_answer(answer, CALL_TOOL.name, Form::ENVELOPE, &|_| None);
    let body = answer.payload.body_bytes();
    let is_complete = json::at(body, &["resultType"]).is_none_or(|it| it == br#""complete""#);
    let says_error = json::at(body, &["isError"]).is_some_and(|it| it != b"false");
    let is_task = json::at(body, &["task"]).is_some();
    answer.outcome == Outcome::Ok && is_complete && !says_error && !is_task
}

/// A topic of a running gateway.
pub type Topic = topic::Topic<Live>;
/// An event of a running topic.
pub type Event<'a> = topic::Event<'a, Live>;
/// An effect in a running topic.
pub type Effect = topic::Effect<Live>;
/// A proposal of a running topic.
pub type ProposalView = topic::ProposalView<Live>;

/// A server of a topic.
#[derive(Debug, Clone)]
pub enum Server {
    /// The gateway's own participant.
    Gateway,
    /// A configured server, or a participant that serves.
    Upstream(Arc<ConfiguredServer>),
}

impl Server {
    /// The configured server, if it is one.
    pub fn upstream(&self) -> Option<&Arc<ConfiguredServer>> {
        match self {
            Self::Gateway => None,
            Self::Upstream(server) => Some(server),
        }
    }
}

/// A server that takes part in a topic.
pub struct ConfiguredServer {
    /// Its name.
    pub id: ParticipantId,
    /// Its sessions.
    pub upstream: Arc<Upstream>,
    /// Connection of the participant, if the server is one that dials in.
    pub(crate) dial_in: Option<Arc<DialIn>>,
    /// The accounts of its callers, if each has one.
    pub(crate) callers: Option<Arc<Callers>>,
}

impl ConfiguredServer {
    /// Lists of the server to a participant, in this form if it can be; where each caller has an
    /// account, those of an open session of the participant's own. `None` if it has none there.
    pub(crate) fn listed_to(
        &self,
        participant: &ParticipantId,
        form: Form,
    ) -> Option<Arc<Manifest>> {
        match &self.callers {
            None => Some(self.upstream.manifest_in(form)),
            Some(_) => self.upstream.manifest_of(participant, form),
        }
    }

    /// Lists of the server to a participant; without a session of its own, those that callers
    /// without an account see.
    pub fn manifest_for(&self, participant: &ParticipantId, form: Form) -> Arc<Manifest> {
        let shown = || self.callers.as_ref().map(|callers| callers.shown());
        self.listed_to(participant, form)
            .or_else(shown)
            .unwrap_or_default()
    }

    /// Whether some arguments of a tool are preset or hidden.
    pub(crate) fn cuts(&self, tool: &str) -> bool {
        self.upstream
            .spec()
            .config
            .curation
            .as_ref()
            .is_some_and(|curation| curation.cuts(tool))
    }

    /// Whether the arguments of its calls are checked by its tools' schemas, as this manifest has
    /// them: always, if these are messages of proto-mcp.
    pub(crate) fn validates(&self, manifest: &Manifest) -> bool {
        self.upstream.spec().config.validate || manifest.coding == Coding::Proto
    }
}

impl std::fmt::Debug for ConfiguredServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ConfiguredServer").field(&self.id).finish()
    }
}

/// A server's question on its way to a client.
#[derive(Debug)]
pub struct ServerQuestion {
    pub(crate) question: Question,
    /// The session on which the server asks.
    pub(crate) session: Weak<Session>,
    /// The server.
    pub(crate) server: ParticipantId,
    /// The task that it belongs to.
    pub(crate) task: Option<Arc<ServerTask>>,
}

impl ServerQuestion {
    /// The question as an entry of `inputRequests` under its number, with URIs as `respell` spells
    /// them.
    pub(crate) fn entry(
        &self,
        operation: OperationId,
        respell: &dyn Fn(&str) -> Option<String>,
    ) -> Option<(String, Vec<u8>)> {
        Some((
            operation.number().to_string(),
            input::question(self.question.request(), respell)?,
        ))
    }
}
