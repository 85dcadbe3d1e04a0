//! Client of proto-mcp on a connection to a gateway: frames from the first byte on.

use bytes::BytesMut;
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use wire::proto::contract::{
    ClientCapabilities, InitializeRequest, InitializeResponse, ListToolsRequest, ListToolsResponse,
};
use wire::proto::frame::{FRAME_BYTES_MAX, Frame, Frames, of_field};
use wire::proto::{Content, PayloadKind, ProtoEnvelope, VERSION};

use crate::remote::endpoint::{Endpoint, GatewayConnection};
use terminal::exit::Exit;
use terminal::failure::Failure;

/// Pages of a list, so that one without an end does not keep the command running.
const PAGES_MAX: usize = 1000;

/// The length of the list of tools in proto-mcp, in bytes: all pages, with the schemas inline or by
/// reference; `None` if the gateway has no registry for this client.
///
/// # Errors
/// When the gateway cannot be reached, or refuses.
pub(crate) async fn list_bytes(
    endpoint: &dyn Endpoint,
    topic: &str,
    inline: bool,
) -> Result<Option<usize>, Failure> {
    let mut peer = Peer {
        connection: endpoint.connect().await?,
        frames: Frames::new(FRAME_BYTES_MAX, BytesMut::new()),
    };
    let mut hello = InitializeRequest {
        protocol_version: VERSION.to_owned(),
        capabilities: Some(ClientCapabilities {
            supports_bsr_refs: !inline,
            ..Default::default()
        }),
        ..InitializeRequest::default()
    };
    // On a bare connection there are no headers and no path: the metadata has what they would.
    if let Some(token) = endpoint.token() {
        hello.metadata.insert("token".to_owned(), token.to_owned());
    }
    hello
        .metadata
        .insert("mcp.topic".to_owned(), topic.to_owned());
    let (_, answer) = peer.ask(PayloadKind::InitializeRequest, &hello).await?;
    let declared = InitializeResponse::decode(answer)
        .ok()
        .and_then(|answer| answer.capabilities);
    if !inline && !declared.is_some_and(|declared| declared.supports_bsr_refs) {
        return Ok(None);
    }
    let mut bytes = 0;
    let mut cursor = String::new();
    for _ in 0..PAGES_MAX {
        let list = ListToolsRequest {
            include_schemas: inline,
            cursor,
            ..ListToolsRequest::default()
        };
        let (kind, page) = peer.ask(PayloadKind::ListToolsRequest, &list).await?;
        bytes += page.len();
        if kind != PayloadKind::ListToolsResponse {
            return Err(broken("the answer is no list"));
        }
        let page = ListToolsResponse::decode(page).map_err(|_| broken("the answer is no list"))?;
        cursor = page.next_cursor;
        if cursor.is_empty() {
            break;
        }
    }
    Ok(Some(bytes))
}

struct Peer {
    connection: GatewayConnection,
    frames: Frames,
}

impl Peer {
    /// Sends a request, and returns its answer.
    async fn ask(
        &mut self,
        kind: PayloadKind,
        request: &impl prost::Message,
    ) -> Result<(PayloadKind, bytes::Bytes), Failure> {
        let frame = of_field(1, &kind.field_of(request)).unwrap_or_default();
        self.connection
            .write_all(&frame)
            .await
            .map_err(|error| broken(&error.to_string()))?;
        loop {
            while let Some(frame) = self.frames.next_frame() {
                let Frame::Message(message) = frame else {
                    continue;
                };
                let Ok(ProtoEnvelope {
                    content: Content::Payload(_, field),
                    ..
                }) = ProtoEnvelope::read(&message)
                else {
                    continue;
                };
                let Some((kind, answer)) = PayloadKind::split(&field) else {
                    continue;
                };
                if kind == PayloadKind::ErrorResponse {
                    let error =
                        wire::proto::contract::ErrorResponse::decode(answer).unwrap_or_default();
                    return Err(Failure::new(Exit::Refused, "refused", error.message));
                }
                return Ok((kind, answer));
            }
            match self.connection.read_buf(self.frames.buffer()).await {
                Ok(0) => return Err(broken("it was closed")),
                Ok(_) => {}
                Err(error) => return Err(broken(&error.to_string())),
            }
        }
    }
}

fn broken(why: &str) -> Failure {
    Failure::new(
        Exit::Failed,
        "gateway_broken",
        format!("the connection to the gateway broke: {why}"),
    )
}
