//! Link to a proto-mcp server: the session's JSON-RPC on one side, the server's protobuf on the
//! other.
//!
//! What the session writes in JSON is translated, and so are the answers to it. A message that is
//! protobuf already passes as it is, and its answer returns as it came.

mod answer;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use client::{Closing, Flow, LinkError, LinkInbox, LinkTransport, SendError, SendMeta, ServerLink};
use foldhash::fast::RandomState;
use model::{Coding, Outcome};
use platform::Mutex;
use transcode::server::{call, handshake, schemas::SentTool};
use wire::proto::contract::{ListResourcesRequest, ListToolsRequest, ReadResourceRequest};
use wire::proto::{self, Content, PayloadKind, ProtoEnvelope, message};
use wire::rpc::{self, Message, code, notification};

use crate::session::{Session, inbox::SessionInbox};

/// The longest identity of a client that a handshake repeats, in bytes.
const IDENTITY_BYTES_MAX: usize = 256;

/// The sender of an open request, which decides the form of its answer.
#[derive(Debug)]
enum Asked {
    /// A caller that reads protobuf wrote it: its answer stays as it comes.
    Relayed,
    /// The session or a caller that reads JSON wrote it: the kind of its answer, and the messages
    /// of the tool that it calls.
    Json(PayloadKind, Option<Box<SentTool>>),
    /// A sign of life.
    Ping,
}

/// The link, for the session that it belongs to. Open requests are by number.
pub(crate) struct ProtoLink(Arc<State>);

struct State {
    session: Weak<Session>,
    frames: OnceLock<ServerLink>,
    open: Mutex<HashMap<u64, Asked, RandomState>>,
}

/// Receives the server's messages.
pub(crate) struct ProtoInbox(Arc<State>);

impl ProtoLink {
    /// A link without frames, and what receives them.
    pub(crate) fn new(session: &Arc<Session>) -> (Self, Arc<ProtoInbox>) {
        let session = Arc::downgrade(session);
        let state = Arc::new(State {
            session,
            frames: OnceLock::new(),
            open: Mutex::default(),
        });
        (Self(Arc::clone(&state)), Arc::new(ProtoInbox(state)))
    }

    /// Sets what carries its messages.
    pub(crate) fn over(self, frames: ServerLink) -> ServerLink {
        let _ = self.0.frames.set(frames);
        ServerLink::custom(Arc::new(self))
    }

    fn frames(&self) -> Result<&ServerLink, SendError> {
        self.0.frames.get().ok_or(SendError::Closed)
    }
}

impl LinkTransport for ProtoLink {
    fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), SendError> {
        let Some(number) = meta.request else {
            // No notification of JSON-RPC has a message in proto-mcp 1.0.
            return Ok(());
        };
        let (asked, written) = match meta.coding {
            Coding::Proto => (Asked::Relayed, frame),
            Coding::Json => match self.0.translated(frame, number) {
                Ok((asked, field)) => (asked, message(number, &field)),
                Err(answer) => {
                    let _ = self.0.inbox().frame(answer, Some(number));
                    return Ok(());
                }
            },
        };
        // Before it is sent: its answer may come at once.
        self.0.open.lock().insert(number, asked);
        let sent = self.frames().and_then(|frames| frames.send(written, meta));
        if sent.is_err() {
            self.0.open.lock().remove(&number);
        }
        sent
    }

    fn cancel(&self, request: u64) {
        self.0.open.lock().remove(&request);
        if let Some(frames) = self.0.frames.get() {
            frames.cancel(request);
        }
    }

    fn pid(&self) -> Option<u32> {
        self.0.frames.get()?.pid()
    }

    fn process(&self) -> Option<client::processes::Root> {
        self.0.frames.get()?.process()
    }

    fn close(&self) -> Closing<'_> {
        match self.0.frames.get() {
            Some(frames) => frames.close(),
            None => Box::pin(async {}),
        }
    }
}

impl State {
    /// A request of JSON-RPC as a payload field, empty for a ping; or its answer, if no server has
    /// another one.
    fn translated(&self, frame: Bytes, number: u64) -> Result<(Asked, Bytes), Bytes> {
        let id = rpc::Id::number(number);
        let request = Message::read(frame)
            .map_err(|error| rpc::error(Some(&id), code::INVALID_PARAMS, &error.message, None))?;
        let params = request.params().unwrap_or(b"{}");
        let mut tool = None;
        let wanted;
        let field;
        match request.method() {
            "ping" => return Ok((Asked::Ping, Bytes::new())),
            "initialize" => {
                wanted = PayloadKind::InitializeResponse;
                field = self.hello(params);
            }
            "tools/list" => {
                let list = ListToolsRequest {
                    include_schemas: true,
                    cursor: text_at(params, &["cursor"]),
                    ..ListToolsRequest::default()
                };
                // The first page of a new list: the schemas of an earlier one are out of date.
                if list.cursor.is_empty()
                    && let Some(session) = self.session.upgrade()
                {
                    session.sent_schemas.clear();
                }
                wanted = PayloadKind::ListToolsResponse;
                field = PayloadKind::ListToolsRequest.field_of(&list);
            }
            "resources/list" => {
                let list = ListResourcesRequest {
                    cursor: text_at(params, &["cursor"]),
                };
                wanted = PayloadKind::ListResourcesResponse;
                field = PayloadKind::ListResourcesRequest.field_of(&list);
            }
            // proto-mcp 1.0 has none.
            "resources/templates/list" => {
                return Err(rpc::result(&id, br#"{"resourceTemplates":[]}"#));
            }
            "resources/read" => {
                let read = ReadResourceRequest {
                    uri: text_at(params, &["uri"]),
                };
                wanted = PayloadKind::ReadResourceResponse;
                field = PayloadKind::ReadResourceRequest.field_of(&read);
            }
            "tools/call" => {
                tool = self.sent_tool(&text_at(params, &["name"]));
                wanted = PayloadKind::CallToolResponse;
                field = call::request(params, tool.as_ref()).map_err(|error| {
                    rpc::error(Some(&id), code::INVALID_PARAMS, &error.to_string(), None)
                })?;
            }
            method => {
                let why = format!("proto-mcp 1.0 has no `{method}`");
                return Err(rpc::error(Some(&id), code::METHOD_NOT_FOUND, &why, None));
            }
        }
        Ok((Asked::Json(wanted, tool.map(Box::new)), field))
    }

    /// The handshake as a payload field.
    fn hello(&self, params: &[u8]) -> Bytes {
        let name = identity_at(params, &["clientInfo", "name"]);
        let version = identity_at(params, &["clientInfo", "version"]);
        let session = self.session.upgrade();
        let resolves = session.is_some_and(|session| session.setup.environment.resolve.is_some());
        PayloadKind::InitializeRequest.field_of(&handshake::request(&name, &version, resolves))
    }

    /// The messages of a tool, if its server sent some.
    fn sent_tool(&self, name: &str) -> Option<SentTool> {
        let session = self.session.upgrade()?;
        session.manifest().sent.get(name).cloned()
    }

    /// The session as it receives JSON-RPC.
    fn inbox(&self) -> SessionInbox {
        SessionInbox(Weak::clone(&self.session))
    }

    /// Handles a message under an id.
    fn answered(&self, id: u64, content: Content) {
        let Some(asked) = self.open.lock().remove(&id) else {
            // Late, or of no request.
            tracing::debug!(id, "dropped an answer without a pending request");
            return;
        };
        match (asked, content) {
            (Asked::Relayed, content) => self.relayed(id, content),
            // Whatever it answers, it lives.
            (Asked::Ping, _) => {
                let pong = rpc::result(&rpc::Id::number(id), b"{}");
                let _ = self.inbox().frame(pong, Some(id));
            }
            (Asked::Json(wanted, tool), content) => {
                let Some(session) = self.session.upgrade() else {
                    return;
                };
                match answer::to_json(&session, id, wanted, tool.as_deref(), content) {
                    Ok(frame) => drop(self.inbox().frame(frame, Some(id))),
                    Err(why) => self.inbox().failed(id, LinkError::Malformed(why)),
                }
            }
        }
    }

    /// Handles the answer to a request of a caller that reads protobuf: a call or a resource.
    fn relayed(&self, id: u64, content: Content) {
        match content {
            Content::Payload(
                PayloadKind::CallToolResponse | PayloadKind::ReadResourceResponse,
                field,
            ) => {
                let outcome = if proto::call::failed(&field) {
                    Outcome::Error
                } else {
                    Outcome::Ok
                };
                self.relay(id, outcome, field);
            }
            Content::Payload(PayloadKind::ErrorResponse, field) => {
                self.relay(id, Outcome::Error, field);
            }
            _ => {
                let why = "it answers another request".to_owned();
                self.inbox().failed(id, LinkError::Malformed(why));
            }
        }
    }

    /// Gives a caller that reads protobuf its answer.
    fn relay(&self, number: u64, outcome: Outcome, field: Bytes) {
        if let Some(session) = self.session.upgrade() {
            session.relayed(number, outcome, field);
        }
    }

    /// Handles a message that answers nothing: an announcement of changed lists.
    fn announced(&self, content: &Content) {
        let method = match content {
            Content::Payload(PayloadKind::ListToolsResponse, _) => {
                "notifications/tools/list_changed"
            }
            Content::Payload(PayloadKind::ListResourcesResponse, _) => {
                "notifications/resources/list_changed"
            }
            Content::Payload(..) | Content::Ping | Content::Unknown => return,
        };
        let _ = self.inbox().frame(notification(method, None), None);
    }
}

/// A text in params; empty if there is none.
fn text_at(params: &[u8], path: &[&str]) -> String {
    json::at(params, path)
        .and_then(json::text)
        .unwrap_or_default()
        .into_owned()
}

/// A text of a client's identity, no longer than a handshake repeats it.
fn identity_at(params: &[u8], path: &[&str]) -> String {
    text_at(params, path)
        .chars()
        .take(IDENTITY_BYTES_MAX)
        .collect()
}

impl LinkInbox for ProtoInbox {
    fn frame(&self, frame: Bytes, _: Option<u64>) -> Flow {
        match ProtoEnvelope::read(&frame) {
            Ok(ProtoEnvelope { id: 0, content }) => self.0.announced(&content),
            Ok(ProtoEnvelope { id, content }) => self.0.answered(id, content),
            // The session counts and logs what it cannot read.
            Err(_) => return self.0.inbox().frame(frame, None),
        }
        Flow::Open
    }

    fn failed(&self, request: u64, error: LinkError) {
        self.0.open.lock().remove(&request);
        self.0.inbox().failed(request, error);
    }

    fn closed(&self, why: LinkError) {
        self.0.open.lock().clear();
        self.0.inbox().closed(why);
    }
}
