//! JSON-RPC batches, which only revision 2025-03-26 has.

use bytes::Bytes;
use json::Span;

use super::message::{Malformed, Message};

/// Reads a batch: one result for each element, in order. A bad element affects no other.
///
/// # Errors
/// [`Malformed`] when the frame is no JSON array, is empty, or has more than `limit` elements.
pub fn read_batch(
    frame: &Bytes,
    limit: usize,
) -> Result<Vec<Result<Message, Malformed>>, Malformed> {
    let spans =
        json::elements(frame, Span::all(frame)).map_err(|error| Malformed::json(&error, None))?;
    if spans.is_empty() {
        return Err(Malformed::request("an empty batch", None));
    }
    if spans.len() > limit {
        return Err(Malformed::request(
            format!("a batch of more than {limit} messages"),
            None,
        ));
    }
    Ok(spans
        .iter()
        .map(|span| Message::read(frame.slice(span.start..span.end)))
        .collect())
}
