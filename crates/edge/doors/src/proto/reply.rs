//! Replies of proto-mcp: answers as payload fields of `MCPMessage`.

use std::sync::Arc;

use bytes::Bytes;
use control::Registry;
use control::modules::{self, ListedModules};
use gateway::{Call, Dispatch, Reply, Respell};
use model::{Answer, Coding, Form, Outcome, Refusal, RefusalCode};
use transcode::client::{self, Wanted};
use wire::mcp::relay;
use wire::proto::code::TIMEOUT;
use wire::proto::contract::ErrorResponse;
use wire::proto::{PayloadKind, frame, spell};
use wire::rpc::{ErrorObject, code};

use crate::reply::Sink;
use crate::unread::too_many;

/// Source of the schemas of a client's lists.
pub(crate) struct Schemas {
    /// The modules of all servers.
    pub(crate) registry: Arc<Registry>,
    /// The client's topic.
    pub(crate) dispatch: Arc<Dispatch>,
    /// The gateway as the client names it.
    pub(crate) host: Option<Arc<str>>,
}

/// The reply of one request on a framed connection.
pub(crate) struct FrameReply<S> {
    /// Sink of its frame.
    pub(crate) sink: S,
    /// The client's id of the request.
    pub(crate) id: u64,
    /// The schemas of what it lists.
    pub(crate) schemas: Schemas,
    /// Form in which a list is wanted.
    pub(crate) wanted: Wanted,
}

impl<S: Sink> Reply for FrameReply<S> {
    fn settle(&self, call: &Call, answer: &Answer, respell: &Respell<'_>) {
        let field = field_of(&self.schemas, call, answer, respell, &self.wanted);
        let field =
            field.unwrap_or_else(|refusal| spell(&refusal, call.request.method.as_str()).field());
        send(&self.sink, self.id, &field, call.request.method.as_str());
    }

    fn refuse(&self, call: &Call, refusal: &Refusal) {
        // The tool ran: an error of the call, not of the request (proto-mcp v1.0, "Error
        // Handling").
        if refusal.code == RefusalCode::UpstreamTimeout
            && call.request.method.as_str() == "tools/call"
        {
            let data = json::object(|data| {
                data.text("code", refusal.code.as_str());
            });
            let field = client::error("tools/call", TIMEOUT, &refusal.to_string(), Some(&data));
            return send(&self.sink, self.id, &field, "tools/call");
        }
        refuse(&self.sink, self.id, refusal, call.request.method.as_str());
    }

    fn abandon(&self, _: &Call) {
        self.sink.skip();
    }
}

/// Sends the refusal of a request.
pub(crate) fn refuse(sink: &impl Sink, id: u64, refusal: &Refusal, method: &str) {
    let spelled = spell(refusal, method);
    // A refusal is short.
    sink.answer(
        frame::of_field(id, &spelled.field()).unwrap_or_default(),
        Some(i64::from(spelled.error.code)),
    );
}

/// The answer to bytes that are no message: the stream is still in step.
pub(crate) fn unreadable() -> Bytes {
    let code = i32::try_from(code::PARSE_ERROR).unwrap_or_default();
    let message = "the frame is no MCPMessage".to_owned();
    PayloadKind::ErrorResponse.field_of(&ErrorResponse {
        code,
        message,
        data: None,
    })
}

/// Sends an answer, if its client has room for it and a frame can carry it.
pub(crate) fn send(sink: &impl Sink, id: u64, field: &[u8], method: &str) {
    let refusal = match frame::of_field(id, field) {
        Some(frame) if sink.bounds().held.has_room(frame.len()) => return sink.answer(frame, None),
        Some(_) => too_many(),
        None => {
            let mib = frame::FRAME_BYTES_MAX >> 20;
            Refusal::new(
                RefusalCode::TooLarge,
                format!("the answer is longer than {mib} MiB"),
            )
        }
    };
    refuse(sink, id, &refusal, method);
}

/// An answer as the payload field of an `MCPMessage`: its bytes if the server wrote protobuf, else
/// what its JSON says.
///
/// # Errors
/// Why there is none.
pub(crate) fn field_of(
    schemas: &Schemas,
    call: &Call,
    answer: &Answer,
    respell: &Respell<'_>,
    wanted: &Wanted,
) -> Result<Bytes, Refusal> {
    if answer.payload.coding == Coding::Proto {
        return Ok(answer.payload.bytes.clone());
    }
    let failed = || {
        Refusal::new(
            RefusalCode::UpstreamFailed,
            "the server's answer cannot be read",
        )
    };
    let method = call.request.method.as_str();
    let asking = (&*call.link, call.narrowing());
    let converted = relay::convert_answer(answer, method, Form::Legacy, respell);
    let body = converted.payload.body_bytes();
    if converted.outcome != Outcome::Ok {
        let error = ErrorObject::read(body).ok_or_else(failed)?;
        return Ok(client::error(
            method,
            error.code,
            &error.message,
            error.data,
        ));
    }
    match method {
        "tools/list" => {
            let Schemas {
                registry,
                dispatch,
                host,
            } = schemas;
            let listed = ListedModules::new(registry, dispatch, asking, host.as_deref());
            client::tools(body, wanted, &|name| listed.schema(name))
        }
        "resources/list" => client::resources(body),
        "resources/read" => client::read_result(body),
        _ => {
            let target = call
                .request
                .target
                .as_ref()
                .map(model::Target::as_str)
                .unwrap_or_default();
            client::call_result(
                body,
                modules::tool_schema(&schemas.dispatch, asking, target).as_ref(),
            )
        }
    }
}
