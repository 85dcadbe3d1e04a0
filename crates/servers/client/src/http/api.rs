//! Client of an HTTP API that is no MCP server: any method, one origin, with the headers,
//! certificates and accounts of a server.

use super::api_message::{ApiAnswer, ApiRequest};
use super::peer::{HttpSpec, Peer};
use crate::error::LinkError;

/// A client of one API.
#[derive(Debug)]
pub struct ApiClient(Peer);

impl ApiClient {
    /// Connects to nothing yet. Of the URL only the origin counts.
    ///
    /// # Errors
    /// [`LinkError::Unreachable`] when the URL cannot be used.
    pub fn new(spec: &HttpSpec) -> Result<Self, LinkError> {
        Peer::new(spec).map(Self)
    }

    /// Sends a request, and reads its answer of at most this many bytes.
    ///
    /// # Errors
    /// Why there is no answer; [`LinkError::TooLarge`] if it is longer than allowed.
    pub async fn ask(
        &self,
        request: &ApiRequest,
        bytes_max: usize,
    ) -> Result<ApiAnswer, LinkError> {
        self.0.ask(request, bytes_max).await
    }

    /// Whether the sign-in in whose name it sends has ended or was replaced.
    #[must_use]
    pub fn is_void(&self) -> bool {
        self.0.is_void()
    }
}
