//! Dialing a gateway: the connection and the WebSocket handshake (MCPx v0.1, section 6.2).

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderValue};
use http::{StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use tokio_tungstenite::{
    WebSocketStream, tungstenite::Error, tungstenite::client::IntoClientRequest, tungstenite::http::Response,
    tungstenite::protocol::WebSocketConfig,
};

use super::error::ConnectError;
use super::spec::{FRAME_BYTES_MAX, ParticipantSpec};
use crate::http::connect::{Connector, HttpSocket};
use crate::{error::LinkError, http::endpoint};

/// Characters of a gateway's explanation that are kept.
const MESSAGE_CHARS: usize = 300;

/// A WebSocket after its handshake.
pub(super) type WebSocket = WebSocketStream<TokioIo<HttpSocket>>;

/// Dials once.
pub(super) async fn dial(spec: &ParticipantSpec) -> Result<WebSocket, ConnectError> {
    let address = spec.address()?;
    let dialed = timeout(spec.connect_timeout, open(spec, &address));
    dialed.await.unwrap_or_else(|_| Err(ConnectError::Unreachable("connecting took too long".to_owned())))
}

async fn open(spec: &ParticipantSpec, address: &Uri) -> Result<WebSocket, ConnectError> {
    // `ws` and `wss` become `http` and `https`.
    let url = address.to_string().replacen("ws", "http", 1);
    let url = endpoint::parse(&url).map_err(ConnectError::BadUrl)?;
    let socket = Connector::new(url, spec.connect_timeout).connect().await.map_err(|error| match error {
        LinkError::Unreachable(why) | LinkError::Untrusted(why) => ConnectError::Unreachable(why),
        other => ConnectError::Unreachable(other.to_string()),
    })?;
    let mut request = address
        .clone()
        .into_client_request()
        .map_err(|_| ConnectError::BadUrl("it cannot be written as a request"))?;
    if let Some(token) = &spec.token {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
            ConnectError::Unauthenticated("a token must not contain control characters".to_owned())
        })?;
        bearer.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, bearer);
    }
    let config = WebSocketConfig::default()
        .max_message_size(Some(FRAME_BYTES_MAX))
        .max_frame_size(Some(FRAME_BYTES_MAX));
    match tokio_tungstenite::client_async_with_config(request, TokioIo::new(socket), Some(config)).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) => Err(refused(*response)),
        Err(error) => Err(ConnectError::Unreachable(error.to_string())),
    }
}

fn refused(response: Response<Option<Vec<u8>>>) -> ConnectError {
    let (head, body) = response.into_parts();
    let body = Bytes::from(body.unwrap_or_default());
    let message: String = String::from_utf8_lossy(&body).trim().chars().take(MESSAGE_CHARS).collect();
    match head.status {
        StatusCode::UNAUTHORIZED => ConnectError::Unauthenticated(message),
        StatusCode::FORBIDDEN => ConnectError::Forbidden(message),
        status => ConnectError::Http { status: status.as_u16(), message },
    }
}
