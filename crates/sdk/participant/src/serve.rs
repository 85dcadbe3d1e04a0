//! Requests of other participants, and the service that answers them.

use std::{pin::Pin, sync::Arc};

use serde_json::Value;
use serde_json::value::RawValue;
use wire::mcpx::check::EnvelopeCall;

use crate::error::RpcError;

/// Result of a function of a server: a value, or an error in words.
pub(crate) type Outcome = Result<Value, String>;
/// A function of a server: it gets arguments and the request.
pub(crate) type Run = Arc<
    dyn Fn(Value, IncomingRequest) -> Pin<Box<dyn Future<Output = Outcome> + Send>> + Send + Sync,
>;

/// Requests that are answered at one time. Further ones are answered with an error that says to try
/// again.
pub const CALLS_MAX: usize = 64;

/// A request that names this participant in `to` and whose kind and payload agree.
#[derive(Debug, Clone)]
pub struct IncomingRequest {
    /// The sender; the gateway vouches for it.
    pub from: String,
    /// The id of the envelope.
    pub envelope_id: String,
    /// The proposal that the request fulfils, if it names one.
    pub fulfils: Option<FulfilledProposal>,
    /// Method and params.
    pub call: EnvelopeCall,
}

/// The proposal that a request fulfils.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FulfilledProposal {
    /// The proposal's id.
    pub proposal: String,
    /// The proposer; `None` if this participant has not received the proposal.
    pub proposer: Option<String>,
}

/// The result of a request as JSON, or an error.
pub type ServeResult = Result<Box<RawValue>, RpcError>;

/// The future of a [`ServeResult`].
pub type AnswerFuture = Pin<Box<dyn Future<Output = ServeResult> + Send>>;

/// Answers requests. [`Tools`](crate::Tools) is an implementation for plain tools.
///
/// It gets `mcp/request` envelopes that name the participant, each (sender, id) once; never
/// proposals. Requests run concurrently, at most [`CALLS_MAX`]. A panic is answered as an internal
/// error.
pub trait Serve: Send + Sync + 'static {
    /// Answers one request.
    fn answer(&self, request: IncomingRequest) -> AnswerFuture;
}
