//! The arguments of a call of one of our tools. Must not know what they mean.

use std::borrow::Cow;

use model::{Refusal, RefusalCode};
use serde::de::DeserializeOwned;
use wire::mcp::Params;

/// A text among them.
pub(super) fn text(params: &Params<'_>, key: &str) -> Option<String> {
    let member = params.get("arguments")?;
    let frame = params.message().frame();
    let arguments = json::members(frame, member.span).ok()?;
    arguments.get(key).and_then(|value| json::text(value.raw)).map(Cow::into_owned)
}

/// All of them.
///
/// # Errors
/// What is wrong with them, in words for whoever wrote them.
pub(super) fn read<T: DeserializeOwned>(params: &Params<'_>) -> Result<T, Refusal> {
    let raw = params.get("arguments").map_or(b"{}".as_slice(), |member| member.raw);
    serde_json::from_slice(raw).map_err(|error| {
        let why = format!("the arguments cannot be read: {error}");
        Refusal::new(RefusalCode::Malformed, why).hint("the tool's inputSchema says what it takes")
    })
}
