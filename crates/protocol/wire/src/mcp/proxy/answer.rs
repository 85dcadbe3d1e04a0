//! Answers of called targets as results of the proxy tool (section 3.2).

use json::{MemberChange, Members, Span, Splice, edit_object, quote};
use model::{Answer, Form, Outcome};

use super::ProxySubject;
use super::query::annotate;
use crate::mcp::code::{MISSING_CAPABILITY, URL_ELICITATION_REQUIRED};
use crate::mcp::relay;
use crate::mcp::result::{end, words};
use crate::rpc::ErrorObject;

/// Why an operation of a batch fails that asks its caller something, or becomes a task.
pub const NOT_IN_A_BATCH: &str =
    "this needs an answer, or a task, which a batch does not have: call it on its own";

/// A media type that says JSON.
const JSON: &str = "application/json";
const JSON_RAW: &[u8] = b"\"application/json\"";

/// The answer to the request that a call stood for, as a result of the proxy tool in the caller's
/// form; `None` if it passes as it is: a task, a question, or an error about which the client can
/// do something. `public_uri` is that of [`relay::convert_answer`].
pub fn answered(
    subject: ProxySubject,
    path: &str,
    answer: &Answer,
    method: &str,
    form: Form,
    public_uri: &dyn Fn(&str) -> Option<String>,
) -> Option<Vec<u8>> {
    let answer = relay::convert_answer(answer, method, form, public_uri);
    let body = answer.payload.body_bytes();
    if answer.outcome == Outcome::Ok {
        return called(subject, path, body, form);
    }
    let error = ErrorObject::read(body)?;
    if matches!(error.code, URL_ELICITATION_REQUIRED | MISSING_CAPABILITY) {
        return None;
    }
    Some(words(&error.message, true, form))
}

/// The answer to an operation of a batch as a result of the tool. What passes as it is elsewhere is
/// a fault there.
pub fn operated(answer: &Answer, method: &str, form: Form) -> Vec<u8> {
    let answer = relay::convert_answer(answer, method, form, &|_| None);
    let result = answer.payload.body_bytes();
    let is_whole = answer.outcome == Outcome::Ok && json::at(result, &["content"]).is_some();
    if is_whole {
        result.to_vec()
    } else {
        words(NOT_IN_A_BATCH, true, form)
    }
}

/// The result of a called target as a result of the proxy tool; `None` if it passes as it is.
pub(super) fn called(
    subject: ProxySubject,
    path: &str,
    result: &[u8],
    form: Form,
) -> Option<Vec<u8>> {
    let members = json::members(result, Span::all(result)).ok()?;
    if members
        .get("resultType")
        .is_some_and(|kind| kind.text().as_deref() != Some("complete"))
    {
        return None;
    }
    match subject {
        ProxySubject::Tool => tool(path, result, members.get("content")?.span),
        ProxySubject::Resource => resource(path, result, &members, form),
        ProxySubject::Prompt => Some(prompt(path, result, form)),
    }
}

/// A tool's result with annotations in each content item; all else stays.
fn tool(path: &str, result: &[u8], content: Span) -> Option<Vec<u8>> {
    let path = quote(path);
    let added: [MemberChange<'_>; 3] = [
        ("proxyType", Some(b"\"tool\"")),
        ("proxyAction", Some(b"\"call\"")),
        ("proxyPath", Some(path.as_bytes())),
    ];
    let new = json::object_of(&added)?;
    let mut splice = Splice::new();
    for item in json::elements(result, content).ok()? {
        // An item that cannot be read stays as it is.
        let Ok(members) = json::members(result, item) else {
            continue;
        };
        let annotations = members.get("annotations").filter(|old| old.raw != b"null");
        match annotations.map(|old| json::members(result, old.span)) {
            Some(Ok(old)) => edit_object(&old, &added, &mut splice),
            Some(Err(_)) => {}
            None => edit_object(&members, &[("annotations", Some(&new))], &mut splice),
        }
    }
    Some(splice.apply_to(result))
}

/// A resource's result with each of its contents as an embedded resource; all else stays.
fn resource(path: &str, result: &[u8], members: &Members<'_>, form: Form) -> Option<Vec<u8>> {
    let contents = members.get("contents")?;
    let notes = json::object(|notes| annotate(notes, ProxySubject::Resource, "call", Some(path)));
    let mut splice = Splice::new();
    splice.replace(
        Span {
            start: contents.whole.start,
            end: contents.span.start,
        },
        b"\"content\":",
    );
    for span in json::elements(result, contents.span).ok()? {
        let item = json::object(|item| {
            item.text("type", "resource")
                .raw("resource", &objectified(span.of(result)));
            item.raw("annotations", &notes);
        });
        splice.replace(span, &item);
    }
    let mut changes: Vec<MemberChange<'_>> = vec![("content", None), ("isError", Some(b"false"))];
    if form == Form::Modern {
        changes.push(("resultType", Some(b"\"complete\"")));
    }
    edit_object(members, &changes, &mut splice);
    Some(splice.apply_to(result))
}

/// A content of a resource. A text that is JSON loses its white space and gets the media type of
/// JSON; `contentType` keeps the type that it had.
fn objectified(content: &[u8]) -> Vec<u8> {
    let read = || {
        let members = json::members(content, Span::all(content)).ok()?;
        let old = members.get("mimeType").filter(|old| old.raw != b"null");
        if old
            .and_then(|old| old.text())
            .is_some_and(|old| is_json(&old))
        {
            return None;
        }
        let text = members.get("text")?.text()?;
        let compact = quote(std::str::from_utf8(&json::compact(text.as_bytes()).ok()?).ok()?);
        let mut changes: Vec<MemberChange<'_>> = vec![
            ("text", Some(compact.as_bytes())),
            ("mimeType", Some(JSON_RAW)),
        ];
        changes.extend(old.map(|old| ("contentType", Some(old.raw))));
        json::edited(content, &changes).ok()
    };
    read().unwrap_or_else(|| content.to_vec())
}

/// Whether a media type, parameters aside, is that of JSON.
fn is_json(media: &str) -> bool {
    media
        .split(';')
        .next()
        .is_some_and(|media| media.trim().eq_ignore_ascii_case(JSON))
}

/// The whole result of a prompt as the text of one embedded resource.
fn prompt(path: &str, result: &[u8], form: Form) -> Vec<u8> {
    json::object(|out| {
        out.array("content", |content| {
            content.object(|item| {
                item.text("type", "resource")
                    .object("resource", |resource| {
                        resource
                            .text("uri", &format!("proxy:{path}"))
                            .text("mimeType", JSON);
                        resource.text("text", &String::from_utf8_lossy(result));
                    });
                item.object("annotations", |notes| {
                    annotate(notes, ProxySubject::Prompt, "call", Some(path));
                    notes
                        .text("pythonType", "GetPromptResult")
                        .text("dataType", "GetPromptResult");
                    notes.bool("isArray", false);
                });
            });
        });
        end(out, false, form);
    })
}
