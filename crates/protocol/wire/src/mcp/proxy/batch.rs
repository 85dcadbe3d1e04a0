//! Operations of a batch: their params, and their results as one result (appendix A.1).

use json::{JsonError, Span, Splice, edit_object};
use model::Form;

use super::arguments::{ProxyCall, params_of};
use crate::mcp::result::{end, says_error};

/// An operation with its result, which is a result of the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchResult {
    /// Its arguments.
    pub operation: Vec<u8>,
    /// Its result.
    pub result: Vec<u8>,
}

/// The params of one operation, from those of the batch: without what is for the batch as a whole.
///
/// # Errors
/// [`JsonError`] if the caller's params are no object.
pub fn operation_params(call: &ProxyCall, params: &[u8]) -> Result<Vec<u8>, JsonError> {
    let meta = json::at(params, &["_meta"]).filter(|meta| json::is_object(meta));
    let meta = meta
        .map(|meta| json::edited(meta, &[("progressToken", None)]))
        .transpose()?;
    let made = params_of(call, params)?;
    let gone = [
        ("task", None),
        ("requestState", None),
        ("inputResponses", None),
    ];
    let meta = meta.as_deref().map(|meta| ("_meta", Some(meta)));
    json::edited(&made, &gone.into_iter().chain(meta).collect::<Vec<_>>())
}

/// The result of a batch: the items of all operations in order, each annotated with the place of
/// its operation from 0 and whether that failed; and as data what each operation was and came to,
/// without its items.
#[must_use]
pub fn batched(results: &[BatchResult], form: Form) -> Vec<u8> {
    json::object(|out| {
        out.array("content", |content| {
            for (at, one) in results.iter().enumerate() {
                items(one, at).iter().for_each(|item| {
                    content.raw(item);
                });
            }
        });
        out.object("structuredContent", |data| {
            data.array("results", |all| {
                for one in results {
                    all.object(|of| {
                        of.raw("operation", &one.operation)
                            .bool("isError", says_error(&one.result));
                        for key in ["structuredContent", "_meta"] {
                            if let Some(raw) = json::at(&one.result, &[key]) {
                                of.raw(key, raw);
                            }
                        }
                    });
                }
            });
        });
        end(out, false, form);
    })
}

/// The items of one operation, annotated.
fn items(one: &BatchResult, at: usize) -> Vec<Vec<u8>> {
    let content = json::at(&one.result, &["content"]).unwrap_or(b"[]");
    let (at, failed) = (
        at.to_string(),
        if says_error(&one.result) {
            &b"true"[..]
        } else {
            b"false"
        },
    );
    let added = [
        ("proxyOperation", Some(at.as_bytes())),
        ("proxyFailed", Some(failed)),
    ];
    let annotated = |item: &[u8]| {
        let members = json::members(item, Span::all(item)).ok()?;
        let (mut splice, new) = (Splice::new(), json::object_of(&added)?);
        match members
            .get("annotations")
            .map(|old| json::members(item, old.span))
        {
            Some(Ok(old)) => edit_object(&old, &added, &mut splice),
            Some(Err(_)) | None => {
                edit_object(&members, &[("annotations", Some(&new))], &mut splice)
            }
        }
        Some(splice.apply_to(item))
    };
    let spans = json::elements(content, Span::all(content)).unwrap_or_default();
    let raw = spans.iter().map(|span| span.of(content));
    raw.map(|item| annotated(item).unwrap_or_else(|| item.to_vec()))
        .collect()
}
