//! Payloads of the gateway's own kinds, as participants write them.

use model::{Refusal, RefusalCode};
use serde::de::DeserializeOwned;

/// Reads the payload of an envelope of a kind of the gateway's own, of this shape in words.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn read<T: DeserializeOwned>(payload: &[u8], shape: &str) -> Result<T, Refusal> {
    let wrong = |why: String| Refusal::new(RefusalCode::Malformed, why);
    json::refuse_duplicates(payload)
        .map_err(|error| wrong(format!("the payload is no JSON: {error}")))?;
    serde_json::from_slice(payload)
        .map_err(|error| wrong(format!("the payload is {shape}: {error}")))
}
