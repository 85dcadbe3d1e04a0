//! Requests to the server behind a proxy client: the trait, and its form for servers in a room.

use serde_json::value::RawValue;

use crate::{CallError, Participant};

/// A way to send requests to one MCP server, and to wait for their results.
///
/// Any connection can be one: implement it for a session of your own, after its handshake.
pub trait Requester: Send + Sync {
    /// Sends one request with these params, a JSON object, and waits for its result as the server
    /// wrote it.
    ///
    /// # Errors
    /// [`CallError::Answered`] for a JSON-RPC error, else why there is no answer.
    fn request(
        &self,
        method: &str,
        params: &RawValue,
    ) -> impl Future<Output = Result<Box<RawValue>, CallError>> + Send;
}

/// A server in a participant's topic.
///
/// No notification of a configured server reaches a participant, so a
/// [`ProxyClient`](super::ProxyClient) must be asked to forget its lists. A participant that serves
/// sends them as envelopes ([`Event::Other`](crate::Event::Other)).
#[derive(Debug, Clone)]
pub struct RoomServer {
    /// Sends the requests.
    pub participant: Participant,
    /// The server's id in the topic.
    pub server: String,
}

impl Requester for RoomServer {
    async fn request(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>, CallError> {
        self.participant.request(&self.server, method, params).await
    }
}
