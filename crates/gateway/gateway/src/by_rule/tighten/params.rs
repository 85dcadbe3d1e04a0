//! Params with which a request would run, and its kind there.

use model::{KindRef, Method, Refusal};
use rules::{Arguments, ArgumentsError};
use wire::mcp::relay;

use crate::by_rule::facts::parts_of;
use crate::call::Call;
use crate::live::Server;
use crate::proposals::open::completed;

/// Arguments, and the names of what the params have beside them.
pub(crate) type Parts = (Result<Arguments, ArgumentsError>, Vec<String>);

/// The parts of params with which a request would run.
pub(crate) fn parts_at(method: &Method, params: Result<ParamsAt, ArgumentsError>) -> Parts {
    match params {
        Ok(ParamsAt::Completed(params) | ParamsAt::AsWritten(params)) => {
            parts_of(method.as_str(), params.as_deref())
        }
        Err(error) => (Err(error), Vec::new()),
    }
}

/// The kind of a request for what its receiver has under this name; `None` if it has none.
pub(crate) fn kind_of<'k>(method: &'k Method, own: Option<&'k str>) -> Option<KindRef<'k>> {
    KindRef::request(method.as_str(), own).ok()
}

/// The params with which a request would run at one receiver.
pub(crate) enum ParamsAt {
    /// As they were written: at most receivers.
    AsWritten(Option<String>),
    /// With the presets of the tool.
    Completed(Option<String>),
}

/// The params with which a call would run at a server, in JSON and in the form of legacy MCP.
pub(crate) fn params_of(
    call: &Call,
    server: Option<&Server>,
    own: Option<&str>,
) -> Result<ParamsAt, ArgumentsError> {
    let shown = call.shown().map_err(unreadable)?;
    let whole = match server {
        Some(server) => completed(shown, server, own).map_err(|why| unreadable(&why))?,
        None => None,
    };
    let request = whole.as_ref().unwrap_or(shown);
    match relay::legacy_params(request, None) {
        None if !request.payload.body_bytes().is_empty() => {
            Err(ArgumentsError::Syntax("they cannot be read".to_owned()))
        }
        params => Ok(ParamsAt::Completed(params)),
    }
}

/// Arguments with which it would not run.
pub(super) fn unreadable(refusal: &Refusal) -> ArgumentsError {
    ArgumentsError::Syntax(refusal.message.to_string())
}
