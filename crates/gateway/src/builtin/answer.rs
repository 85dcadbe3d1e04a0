//! Answers of the gateway's own participant.

use std::sync::Arc;

use model::{Refusal, RefusalCode};

use crate::{call::Call, delivery, dispatch::Dispatch};

/// Serves a call concurrently.
pub(super) fn spawn<F>(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    serve: impl FnOnce(Arc<Dispatch>, Arc<Call>) -> F,
) where
    F: Future<Output = Result<Vec<u8>, Refusal>> + Send + 'static,
{
    let (dispatch, call) = (Arc::clone(dispatch), Arc::clone(call));
    let body = serve(Arc::clone(&dispatch), Arc::clone(&call));
    tokio::spawn(async move { delivery::finish(&dispatch, &call, body.await) });
}

/// The refusal of a method that the gateway does not serve.
pub(crate) fn unknown_method(method: &str) -> Refusal {
    Refusal::new(RefusalCode::Unsupported, format!("method not found: {method}"))
}
