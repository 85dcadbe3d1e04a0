//! What answers the requests that others make of a participant. Must not know envelopes' routes or sockets.

use std::pin::Pin;

use serde_json::value::RawValue;
use wire::mcpx::check::Call;

use super::error::RpcError;

/// Requests that are answered at one time; more are told to come again.
pub const CALLS_MAX: usize = 64;

/// One request that named this participant in `to`, strictly checked: kind and payload agree.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Who asks; the gateway vouches for it.
    pub from: String,
    /// The envelope's id.
    pub envelope: String,
    /// The proposal that this fulfils, with its proposer if it was seen.
    pub fulfils: Option<(String, Option<String>)>,
    /// Method and params.
    pub call: Call,
}

/// The result, as JSON, or an error.
pub type Answer = Result<Box<RawValue>, RpcError>;

/// An answer that is being made.
pub type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Whatever answers requests. [`Tools`](super::Tools) does it for plain tools.
///
/// Only `mcp/request` envelopes that name the participant come here, each (sender, id) once; never proposals. Requests run
/// side by side, at most [`CALLS_MAX`]. A panic answers as an internal error.
pub trait Serve: Send + Sync + 'static {
    /// Answers one request.
    fn answer(&self, asked: Asked) -> Answering;
}
