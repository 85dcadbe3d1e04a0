//! Results of tools that the gateway itself writes.

use std::sync::LazyLock;

use json::{Members, Object, Span, Splice};
use memchr::memmem::Finder;
use model::{Answer, Coding, Form, Outcome, Payload};

use super::meta;

/// Whether the result of a tool says that the tool ran and failed.
#[must_use]
pub fn says_error(result: &[u8]) -> bool {
    json::at(result, &["isError"]) == Some(b"true")
}

/// The result of a tool in words.
#[must_use]
pub fn words(text: &str, is_error: bool, form: Form) -> Vec<u8> {
    tool_result(text, is_error, form, |_| {})
}

/// The result of a tool as a text, with more members.
pub fn tool_result(
    text: &str,
    is_error: bool,
    form: Form,
    more: impl FnOnce(&mut Object<'_>),
) -> Vec<u8> {
    json::object(|result| {
        result.array("content", |content| {
            content.object(|block| {
                block.text("type", "text").text("text", text);
            });
        });
        end(result, is_error, form);
        more(result);
    })
}

/// A server's result with one more key in `_meta`, in its form. An error, and what is written in
/// protobuf, stays as it is.
#[must_use]
pub fn with_meta(answer: &Answer, key: &str, raw: &[u8]) -> Answer {
    if answer.outcome != Outcome::Ok || answer.payload.coding != Coding::Json {
        return answer.clone();
    }
    let body = answer.payload.body_bytes();
    let body = if body.is_empty() { b"{}" } else { body };
    match set_within(body, "_meta", key, raw) {
        Ok(body) => Answer {
            outcome: Outcome::Ok,
            payload: Payload {
                is_fitted: answer.payload.is_fitted,
                ..Payload::relayed(answer.payload.form, body)
            },
        },
        Err(_) => answer.clone(),
    }
}

/// A server's answer without the key of `_meta` with the approvals of a call, which only the gateway
/// may write, wherever `_meta` or the key stands twice too. All other bytes stay.
///
/// Most results are only searched for the key, and for escapes that could spell it.
#[must_use]
pub fn without_approval(answer: Answer) -> Answer {
    if answer.outcome != Outcome::Ok {
        return answer;
    }
    Answer {
        outcome: Outcome::Ok,
        payload: payload_without_approval(answer.payload),
    }
}

/// The same of the params of a server's notification.
#[must_use]
pub fn payload_without_approval(payload: Payload) -> Payload {
    if payload.coding != Coding::Json {
        return payload;
    }
    let body = payload.body_bytes();
    if !SPELLINGS.iter().any(|one| one.find(body).is_some()) {
        return payload;
    }
    match without_meta(body, meta::APPROVAL) {
        Some(without) => Payload {
            is_fitted: payload.is_fitted,
            ..Payload::relayed(payload.form, without)
        },
        None => payload,
    }
}

/// Parts of JSON of which one is there if the key of approvals is, as it is or with escapes. Made once:
/// they are looked for in every result.
static SPELLINGS: LazyLock<[Finder<'static>; 3]> =
    LazyLock::new(|| [meta::APPROVAL, "\\u", "\\/"].map(Finder::new));

/// A result without a key of `_meta`, also in the result that the state of a task has in it; `None` if
/// it is not there.
fn without_meta(body: &[u8], key: &str) -> Option<Vec<u8>> {
    let members = json::members_with_duplicates(body, Span::all(body)).ok()?;
    let mut splice = Splice::new();
    leave_out_meta(body, &members, key, &mut splice);
    if members.get("taskId").is_some() {
        let results = members.iter().filter(|(name, _)| *name == "result");
        for (_, result) in results {
            if let Ok(members) = json::members_with_duplicates(body, result.span) {
                leave_out_meta(body, &members, key, &mut splice);
            }
        }
    }
    (!splice.is_empty()).then(|| splice.apply_to(body))
}

/// Leaves a key out of each `_meta` of an object.
fn leave_out_meta(body: &[u8], members: &Members<'_>, key: &str, splice: &mut Splice) {
    for (_, meta) in members.iter().filter(|(name, _)| *name == "_meta") {
        // A `_meta` of another type has no keys.
        let keys = json::members_with_duplicates(body, meta.span).ok();
        if let Some(keys) = keys.filter(|keys| keys.get(key).is_some()) {
            json::edit_object(&keys, &[(key, None)], splice);
        }
    }
}

/// Sets one member of the object under `outer`, and adds that object if it is missing.
///
/// # Errors
/// [`json::JsonError`] when `body` or that member is no object or has a member twice.
pub(super) fn set_within(
    body: &[u8],
    outer: &str,
    key: &str,
    raw: &[u8],
) -> Result<Vec<u8>, json::JsonError> {
    let members = json::members(body, Span::all(body))?;
    let inner = match members.get(outer).filter(|there| there.raw != b"null") {
        Some(there) => json::edited(there.raw, &[(key, Some(raw))])?,
        None => json::object(|inner| {
            inner.raw(key, raw);
        }),
    };
    json::edited(body, &[(outer, Some(&inner))])
}

/// Writes the members that every result has.
pub(super) fn end(result: &mut Object<'_>, is_error: bool, form: Form) {
    result.bool("isError", is_error);
    match form {
        Form::Legacy => {}
        Form::Modern => {
            result.text("resultType", "complete");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_the_gateway_is_taken_out_of_a_servers_result_and_nothing_else() {
        let without = |body: &str| {
            let answer = Answer {
                outcome: Outcome::Ok,
                payload: Payload::body(Form::Legacy, body.as_bytes().to_vec()),
            };
            let without = without_approval(answer);
            String::from_utf8(without.payload.body_bytes().to_vec()).unwrap()
        };
        for (body, expect) in [
            (
                r#"{ "_meta": {"portmoot/approval": {"notes":[]}, "x" : 1.0 }, "content":[]}"#,
                r#"{ "_meta": {"x" : 1.0 }, "content":[]}"#,
            ),
            (
                r#"{"_meta":{"x":1,"portmoot\/approval":1}}"#,
                r#"{"_meta":{"x":1}}"#,
            ),
            (
                r#"{"\u005fmeta":{"\u0070ortmoot/approval":1},"content":[]}"#,
                r#"{"\u005fmeta":{},"content":[]}"#,
            ),
            (
                r#"{"_meta":{"portmoot/approval":1},"_meta":{"portmoot/approval":2,"portmoot/approval":3,"y":4}}"#,
                r#"{"_meta":{},"_meta":{"y":4}}"#,
            ),
            (
                r#"{"taskId":"t","status":"completed","result":{"_meta":{"portmoot/approval":1},"content":[]}}"#,
                r#"{"taskId":"t","status":"completed","result":{"_meta":{},"content":[]}}"#,
            ),
        ] {
            assert_eq!(without(body), expect);
        }
        for body in [
            "{}",
            r#"{"_meta":{"portmoot/approvals":1}}"#,
            r#"{"content":[{"type":"text","text":"portmoot/approval"}],"_meta":null}"#,
            r#"{"portmoot/approval":1,"_meta":{"x":{"portmoot/approval":1}}}"#,
            r#"{"_meta":{"x":"\u00e9"}}"#,
            r#"{"result":{"_meta":{"portmoot/approval":1}}}"#,
            "",
        ] {
            assert_eq!(without(body), body);
        }
    }
}
