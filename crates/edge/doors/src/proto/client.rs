//! One client of proto-mcp: its link, what it declared, and its requests.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use control::{Registry, modules};
use gateway::{Incoming, Joining, Link, Outlet, Requester, Tag, manifests};
use model::{Coding, Form, Method, Payload, Refusal, RefusalCode, Request};
use schema::ToolSchema;
use telemetry::trace::CallerTrace;
use transcode::client::{
    Wanted, call_params, is_foreign, is_own, list_params, open_params, read_params,
};
use wire::proto::PayloadKind;
use wire::proto::call::{self, ProtoRequest};
use wire::rpc::Id;

use super::hello::{self, Declared};
use super::reply::Schemas;
use crate::links::ClientLinks;
use crate::outlet::Visitor;

/// A client whose link has joined.
pub(crate) struct Client {
    /// Its topic, and who it is.
    pub(crate) visitor: Visitor,
    /// Its link.
    pub(crate) link: Arc<Link>,
    /// Bearers of the tokens, by which a client's token is checked.
    pub(crate) registry: Arc<Registry>,
    /// Host of the gateway as the client names it: the schema registry is there for it. Not known
    /// on a pipe.
    pub(crate) host: Option<Arc<str>>,
    /// Declaration of the client.
    pub(crate) declared: Declared,
    /// Whether its requests have no session (gRPC): what it declares is not remembered, and nothing
    /// is pushed to it.
    pub(crate) sessionless: bool,
    /// The trace that the headers of its connection or call name, if they name one.
    pub(crate) trace: Option<Box<CallerTrace>>,
    /// The address from which its requests come.
    pub(crate) address: Option<IpAddr>,
}

/// Way in which a request goes on.
pub(crate) enum Disposition {
    /// The door answers it, with this payload field.
    Answered(Bytes),
    /// The gateway answers it.
    Request(Box<Incoming>, Wanted),
}

impl Client {
    /// Joins the topic. A client may ask before it has said anything of itself: calls over gRPC
    /// have no session.
    ///
    /// # Errors
    /// Why the topic rejects it.
    pub(crate) fn join(
        links: &ClientLinks,
        visitor: Visitor,
        host: Option<Arc<str>>,
        outlet: Arc<dyn Outlet>,
    ) -> Result<Self, Refusal> {
        let id = links.registry.context.link();
        let participant = Arc::clone(&visitor.participant);
        links.make_room(&participant.id, &visitor.dispatch);
        let link = Link::of_proto(id, participant, outlet);
        let joining = Joining {
            promotes: true,
            notified: true,
            ..Joining::default()
        };
        links.registry.join(&visitor.dispatch, &link, joining)?;
        let registry = Arc::clone(&links.registry);
        Ok(Self {
            visitor,
            link,
            registry,
            host,
            declared: Declared::default(),
            sessionless: false,
            trace: None,
            address: None,
        })
    }

    /// Source of the schemas of its lists.
    pub(crate) fn schemas(&self) -> Schemas {
        let dispatch = Arc::clone(&self.visitor.dispatch);
        Schemas {
            registry: Arc::clone(&self.registry),
            dispatch,
            host: self.host.clone(),
        }
    }

    /// Whether a request with this id of the client waits for its answer.
    pub(crate) fn is_open(&self, id: u64) -> bool {
        let tag = Tag::of_client(Id::number(id));
        self.visitor
            .dispatch
            .with(|topic| topic.is_tagged(self.link.id, &tag))
    }

    /// Reads a request. `id` is the client's id of it, if the wire has one.
    ///
    /// # Errors
    /// Why it is refused before the topic sees it.
    pub(crate) async fn take(
        &mut self,
        id: Option<u64>,
        kind: PayloadKind,
        field: Bytes,
    ) -> Result<Disposition, Refusal> {
        let Some((_, message)) = PayloadKind::split(&field) else {
            return Err(malformed("the message cannot be read"));
        };
        let tag = id.map(|id| Tag::of_client(Id::number(id)));
        match kind {
            PayloadKind::InitializeRequest => {
                let (mut declared, version) = hello::read(&message)?;
                // Without a host no reference leads to the gateway's registry.
                declared.references &= self.host.is_some();
                if !self.sessionless {
                    self.declared = declared;
                }
                Ok(Disposition::Answered(hello::answer(version, self.declared)))
            }
            PayloadKind::ListToolsRequest | PayloadKind::ListResourcesRequest => {
                let (params, wanted) = list_params(kind, &message)?;
                let declared = self.declared;
                let wanted = Wanted {
                    references: declared.references && wanted.references,
                    json_schemas: declared.json_schemas,
                    full_descriptors: declared.full_descriptors,
                    ..wanted
                };
                let request = Request {
                    method: Method::Known(kind.method().unwrap_or_default()),
                    target: None,
                    progress: None,
                    payload: Payload::body(Form::Legacy, params),
                };
                let incoming = self.incoming(request, tag);
                Ok(Disposition::Request(Box::new(incoming), wanted))
            }
            PayloadKind::CallToolRequest | PayloadKind::ReadResourceRequest => {
                let (request, schema) = self.named(kind, &field).await?;
                let incoming = Incoming {
                    schema: schema.map(Box::new),
                    ..self.incoming(request, tag)
                };
                Ok(Disposition::Request(Box::new(incoming), Wanted::default()))
            }
            PayloadKind::InitializeResponse
            | PayloadKind::ListToolsResponse
            | PayloadKind::CallToolResponse
            | PayloadKind::ListResourcesResponse
            | PayloadKind::ReadResourceResponse
            | PayloadKind::ErrorResponse => Err(Refusal::new(
                RefusalCode::Unsupported,
                "the gateway asks its clients nothing",
            )),
        }
    }

    /// A request of this client.
    fn incoming(&self, request: Request, tag: Option<Tag>) -> Incoming {
        Incoming {
            trace: self.trace.clone(),
            ..Incoming::plain(request, tag)
        }
    }

    /// Checks the token in the metadata of a call: it may only be its participant's, whom the
    /// connection has named already.
    fn owns(&self, token: &str) -> Result<(), Refusal> {
        let named = self.registry.sender(Some(token));
        if named.is_some_and(|named| named.id == self.link.participant.id) {
            return Ok(());
        }
        Err(Refusal::new(
            RefusalCode::Unauthenticated,
            "the token in the call's metadata is not the caller's",
        )
        .hint("name yourself where the connection begins: by a header or a certificate"))
    }

    /// The caller of this client's requests.
    pub(crate) fn requester(&self) -> Requester<'_> {
        let by = self.link.requester(&self.visitor.participant);
        by.at(self.address)
    }

    /// A request that names a tool or a resource: as it is for a server that reads protobuf, with
    /// the tool's messages, else in JSON. The arguments are checked by the tool's schema.
    async fn named(
        &self,
        kind: PayloadKind,
        field: &Bytes,
    ) -> Result<(Request, Option<ToolSchema>), Refusal> {
        let named =
            call::read(kind, field).map_err(|_| malformed("the message names no single target"))?;
        let Some(ProtoRequest { request, token }) = named else {
            return Err(malformed("the message names no target"));
        };
        if let Some(token) = token {
            self.owns(&token)?;
        }
        let dispatch = &self.visitor.dispatch;
        let asking = (&*self.link, self.visitor.participant.narrowing());
        dispatch.wait_for_target(self.requester(), &request).await;
        let Some((_, message)) = PayloadKind::split(&request.payload.bytes) else {
            return Err(malformed("the message is empty"));
        };
        let relays = match &request.target {
            Some(target) => manifests::coding_of(dispatch, &self.link, target) == Coding::Proto,
            None => false,
        };
        let params = match &request.target {
            Some(model::Target::Tool(tool)) => {
                match modules::tool_schema(dispatch, asking, tool) {
                    Some(schema) if relays && is_own(&message, &schema)? => {
                        return Ok((request, Some(schema)));
                    }
                    Some(schema) => match call_params(&message, &schema) {
                        Ok(params) => params,
                        Err(_)
                            if is_foreign(&message, &schema)
                                && modules::is_untyped(dispatch, asking, tool) =>
                        {
                            return Err(unresolved());
                        }
                        Err(refusal) => return Err(refusal),
                    },
                    // A server without a prefix may have it unlisted. Else the topic refuses it,
                    // whatever its arguments are.
                    None => open_params(&message).unwrap_or_else(|_| {
                        json::object(|params| {
                            params.text("name", tool);
                        })
                    }),
                }
            }
            _ if relays => return Ok((request, None)),
            _ => read_params(&message)?,
        };
        Ok((
            Request {
                payload: Payload::body(Form::Legacy, params),
                ..request
            },
            None,
        ))
    }
}

fn malformed(what: &'static str) -> Refusal {
    Refusal::new(RefusalCode::Malformed, what)
}

/// The refusal of a tool's own message whose schema is not known.
fn unresolved() -> Refusal {
    Refusal::new(
        RefusalCode::SchemaUnresolved,
        "the schema of this tool could not be resolved",
    )
    .hint("send the arguments as a google.protobuf.Struct")
}
