//! Questions to a caller as a result (`input_required`), and its answers (MCP 2026-07-28, "Multi
//! Round-Trip Requests").

use std::sync::LazyLock;

use bytes::Bytes;
use json::{Span, Splice};
use memchr::memmem::Finder;
use model::{Answer, Digest, Form, Method, Notice, Outcome, Payload, Request};

use crate::digest::ReviewedCall;
use crate::mcp::method::lookup;
use crate::mcp::params::{BareParams, Params};
use crate::mcp::{extensions, meta, relay, uris};
use crate::rpc::{ErrorObject, Id, Message};

/// The type of a result that asks something.
const INPUT_REQUIRED: &str = "input_required";
/// Finds that type in any answer.
static ASKS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(INPUT_REQUIRED));
/// The members with which a caller comes back.
pub(crate) const OF_RETRY: [&str; 2] = ["inputResponses", "requestState"];

/// A legacy server's question as an entry of `inputRequests`: an object with method and params,
/// with URIs as `public_uri` spells them if it differs. `None` if the question cannot be read.
#[must_use]
pub fn question(
    question: &Request,
    public_uri: &dyn Fn(&str) -> Option<String>,
) -> Option<Vec<u8>> {
    let (method, body) = (question.method.as_str(), question.payload.body_bytes());
    let params = if body.is_empty() {
        None
    } else {
        Some(question_params(method, body, public_uri)?)
    };
    Some(json::object(|entry| {
        entry.text("method", method);
        if let Some(params) = &params {
            entry.raw("params", params);
        }
    }))
}

fn question_params(
    method: &str,
    body: &[u8],
    public_uri: &dyn Fn(&str) -> Option<String>,
) -> Option<Vec<u8>> {
    let params = BareParams::read(method, body).ok()?;
    let mut splice = Splice::new();
    let mut edit = params.edit();
    // The modern era has no ids of URL questions, and no tasks that a client runs.
    edit.remove("elicitationId").remove("task");
    edit.remove_meta(&[meta::PROGRESS_TOKEN, meta::RELATED_TASK])
        .finish(&mut splice);
    let _ = uris::map_uris((body, Span::all(body)), method, public_uri, &mut splice);
    Some(splice.apply_to(body))
}

/// The result that asks these questions, each under its key.
#[must_use]
pub fn required(questions: &[(String, Vec<u8>)], state: &str) -> Vec<u8> {
    json::object(|result| {
        result.text("resultType", INPUT_REQUIRED);
        if !questions.is_empty() {
            result.raw("inputRequests", &entries(questions));
        }
        result.text("requestState", state);
    })
}

/// The answers of a caller that comes back, each with the key of its question. `None` if they are
/// no object of objects.
#[must_use]
pub fn responses(request: &Request) -> Option<Vec<(String, Answer)>> {
    let body = request.payload.body_bytes();
    let Some(raw) = json::at(body, &["inputResponses"]) else {
        return Some(Vec::new());
    };
    let members = json::members(raw, Span::all(raw)).ok()?;
    let answer = |raw: &[u8]| {
        let payload = Payload::body(Form::Modern, Bytes::copy_from_slice(raw));
        json::is_object(raw).then_some(Answer {
            outcome: Outcome::Ok,
            payload,
        })
    };
    members
        .iter()
        .map(|(key, member)| Some((key.to_owned(), answer(member.raw)?)))
        .collect()
}

/// Binding of a state to its request: the digest of a request without the members with which its
/// caller comes back, and without those of its transport. `None` if the params have no canonical
/// form.
#[must_use]
pub fn binding(request: &Request) -> Option<Digest> {
    let body = match request.payload.body_bytes() {
        b"" => b"{}",
        body => body,
    };
    let params = json::edited(body, &OF_RETRY.map(|key| (key, None))).ok()?;
    let call = ReviewedCall {
        method: request.method.as_str(),
        to: &[],
        params: Some(&params),
        definition: None,
    };
    call.digest().ok()
}

/// Binding of a server's state: the digest of a request's method and target.
#[must_use]
pub fn target_binding(request: &Request) -> Option<Digest> {
    let target = json::object(|params| {
        params.text(
            "target",
            request.target.as_ref().map_or("", model::Target::as_str),
        );
    });
    let params = Some(target.as_slice());
    ReviewedCall {
        method: request.method.as_str(),
        to: &[],
        params,
        definition: None,
    }
    .digest()
    .ok()
}

/// The body of a result that asks something.
fn asking(answer: &Answer) -> Option<&[u8]> {
    let body = answer.payload.body_bytes();
    // First what costs each answer least: its rarest letter, then the whole name.
    if answer.outcome != Outcome::Ok
        || memchr::memchr(b'q', body).is_none()
        || ASKS.find(body).is_none()
    {
        return None;
    }
    let kind = json::at(body, &["resultType"]).and_then(json::text);
    (kind? == INPUT_REQUIRED).then_some(body)
}

/// The state (`requestState`) in a result that asks something; `None` of any other answer.
#[must_use]
pub fn state_of(answer: &Answer) -> Option<String> {
    let body = asking(answer)?;
    Some(
        json::at(body, &["requestState"])
            .and_then(json::text)?
            .into_owned(),
    )
}

/// The answer with another state; `None` if it cannot be read.
#[must_use]
pub fn with_state(answer: &Answer, state: &str) -> Option<Answer> {
    let state = json::quote(state);
    let body = json::edited(
        answer.payload.body_bytes(),
        &[("requestState", Some(state.as_bytes()))],
    )
    .ok()?;
    Some(Answer {
        outcome: answer.outcome,
        payload: Payload::body(answer.payload.form, body),
    })
}

/// The request of a caller that comes back, with another state; `None` if it cannot be read.
#[must_use]
pub fn back_with_state(request: &Request, state: &str) -> Option<Request> {
    relay::edit_params(request, |edit| {
        edit.set("requestState", json::quote(state).as_bytes());
    })
}

/// A legacy server's error -32042 (2025-11-25, "URL Elicitation Required") as a result that asks
/// its questions; a caller comes back by repeating the request. `None` if it is another answer, or
/// its questions cannot be read.
#[must_use]
pub fn of_url_error(answer: &Answer) -> Option<Answer> {
    if answer.outcome != Outcome::Error || answer.payload.form != Form::Legacy {
        return None;
    }
    let error = ErrorObject::read(answer.payload.body_bytes())
        .filter(|error| error.code == crate::mcp::code::URL_ELICITATION_REQUIRED)?;
    let all = json::at(error.data?, &["elicitations"])?;
    let mut questions = Vec::new();
    for span in json::elements(all, Span::all(all)).ok()? {
        let params = json::edited(
            span.of(all),
            &[("elicitationId", None), ("mode", Some(b"\"url\""))],
        )
        .ok()?;
        let question = json::object(|entry| {
            entry
                .text("method", "elicitation/create")
                .raw("params", &params);
        });
        questions.push((questions.len().to_string(), question));
    }
    if questions.is_empty() {
        return None;
    }
    let result = json::object(|result| {
        result
            .text("resultType", INPUT_REQUIRED)
            .raw("inputRequests", &entries(&questions));
    });
    Some(Answer {
        outcome: Outcome::Ok,
        payload: Payload::body(Form::Modern, result),
    })
}

/// Questions of a modern server to a caller before it goes on.
#[derive(Debug)]
pub struct Required {
    /// The questions as legacy requests, each with its key.
    pub questions: Vec<(String, Request)>,
    /// The state to come back with, as it is spelled.
    pub state: Option<Bytes>,
}

/// A result that asks something that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("what the server asks cannot be read")]
pub struct Unreadable;

/// The question whether a URL may be opened, as an entry of `inputRequests` (2026-07-28, "URL Mode
/// Elicitation Requests").
#[must_use]
pub fn url_question(url: &str, message: &str) -> Vec<u8> {
    json::object(|entry| {
        entry
            .text("method", "elicitation/create")
            .object("params", |params| {
                params
                    .text("mode", "url")
                    .text("message", message)
                    .text("url", url);
            });
    })
}

/// The error that has a client open a URL before it calls again (2025-11-25, "URL Elicitation
/// Required").
#[must_use]
pub fn url_error(id: &str, url: &str, message: &str) -> Answer {
    let error = json::object(|error| {
        error
            .number("code", crate::mcp::code::URL_ELICITATION_REQUIRED)
            .text("message", message);
        error.object("data", |data| {
            data.array("elicitations", |all| {
                all.object(|one| {
                    one.text("mode", "url")
                        .text("elicitationId", id)
                        .text("url", url)
                        .text("message", message);
                });
            });
        });
    });
    Answer {
        outcome: Outcome::Error,
        payload: Payload::body(Form::Legacy, error),
    }
}

/// The notification that what a URL was opened for has ended (2025-11-25, "Completion Notifications
/// for URL Mode Elicitation").
#[must_use]
pub fn url_completed(id: &str) -> Notice {
    let params = json::object(|params| {
        params.text("elicitationId", id);
    });
    let method = Method::Known("notifications/elicitation/complete");
    Notice {
        method,
        latest: None,
        payload: Payload::body(Form::Legacy, params),
    }
}

/// A request without the members with which its caller comes back; `None` if it cannot be read.
#[must_use]
pub fn without_retry(request: &Request) -> Option<Request> {
    relay::edit_params(request, |edit| {
        for key in OF_RETRY {
            edit.remove(key);
        }
    })
}

/// Whether the answers of a caller that comes back have one that declines or cancels.
#[must_use]
pub fn declines(answers: &[(String, Answer)]) -> bool {
    answers.iter().any(|(_, answer)| {
        let action = json::at(answer.payload.body_bytes(), &["action"]).and_then(json::text);
        action.is_some_and(|action| action != "accept")
    })
}

/// Reads a modern server's result that asks questions; `None` if it is another answer. `url_id`
/// names URL questions.
///
/// # Errors
/// If it asks and its questions cannot be read.
pub fn read_required(
    answer: &Answer,
    url_id: impl Fn() -> String,
) -> Result<Option<Required>, Unreadable> {
    let Some(body) = asking(answer) else {
        return Ok(None);
    };
    let questions =
        asked(json::at(body, &["inputRequests"]).unwrap_or(b"{}"), &url_id).ok_or(Unreadable)?;
    let state = json::at(body, &["requestState"]).map(Bytes::copy_from_slice);
    Ok(Some(Required { questions, state }))
}

/// The questions of a modern task as a server of 2025-11-25 asks them inside the task of this id,
/// each with its key. `None` if they cannot be read. `url_id` names URL questions.
#[must_use]
pub fn of_task(
    task: &[u8],
    id: &str,
    url_id: impl Fn() -> String,
) -> Option<Vec<(String, Request)>> {
    let within = |(key, question): (String, Request)| {
        let params = crate::mcp::task::related(question.payload.body_bytes(), id).ok()?;
        let payload = Payload::relayed(Form::Legacy, params);
        Some((
            key,
            Request {
                payload,
                ..question
            },
        ))
    };
    let questions = asked(json::at(task, &["inputRequests"]).unwrap_or(b"{}"), &url_id)?;
    questions.into_iter().map(within).collect()
}

/// The entries of `inputRequests` as legacy requests, each with its key.
fn asked(entries: &[u8], url_id: &dyn Fn() -> String) -> Option<Vec<(String, Request)>> {
    let members = json::members(entries, Span::all(entries)).ok()?;
    let question = |entry: &[u8]| {
        let method = json::at(entry, &["method"]).and_then(json::text)?;
        let params = json::at(entry, &["params"]).unwrap_or(b"{}");
        let asks_for_url = json::at(params, &["mode"]).is_some_and(|mode| mode == b"\"url\"");
        let id = json::quote(&url_id());
        let changes = [("elicitationId", Some(id.as_bytes()))];
        let params = json::edited(params, if asks_for_url { &changes } else { &[] }).ok()?;
        let method = lookup(&method).map_or_else(
            || Method::Other((*method).into()),
            |row| Method::Known(row.name),
        );
        Some(Request {
            method,
            target: None,
            progress: None,
            payload: Payload::body(Form::Legacy, params),
        })
    };
    members
        .iter()
        .map(|(key, member)| Some((key.to_owned(), question(member.raw)?)))
        .collect()
}

/// The entries of `inputRequests`: questions, each under its key.
#[must_use]
pub fn entries(questions: &[(String, Vec<u8>)]) -> Vec<u8> {
    json::object(|requests| {
        for (key, question) in questions {
            requests.raw(key, question);
        }
    })
}

/// A request that was sent to a modern server, once more: with these answers and this state, under
/// this number.
#[must_use]
pub fn retry(
    frame: &Bytes,
    number: u64,
    answers: &[(String, Bytes)],
    state: Option<&[u8]>,
) -> Option<Bytes> {
    let message = Message::read(frame.clone()).ok()?;
    let params = Params::read(&message).ok()?;
    let (number, mut edit, mut splice) = (Id::number(number), params.edit(), Splice::new());
    if !answers.is_empty() {
        let answers = json::object(|all| {
            for (key, answer) in answers {
                all.raw(key, answer);
            }
        });
        edit.set("inputResponses", &answers);
    }
    if let Some(state) = state {
        edit.set("requestState", state);
    }
    if params.progress_token().is_some() {
        edit.set_progress_token(&number);
    }
    edit.finish(&mut splice);
    message.set_id(&mut splice, &number);
    Some(message.edited(&splice))
}

/// The modern capabilities of a legacy client, as far as they have questions, and its extensions.
#[must_use]
pub fn capabilities(legacy: &[u8]) -> Vec<u8> {
    let Ok(members) = json::members(legacy, Span::all(legacy)) else {
        return b"{}".to_vec();
    };
    json::object(|all| {
        for key in ["sampling", "elicitation"] {
            if let Some(able) = members.get(key).filter(|able| json::is_object(able.raw)) {
                all.raw(key, able.raw);
            }
        }
        if members.get("roots").is_some() {
            all.raw("roots", b"{}");
        }
        if let Some(declared) = members
            .get("extensions")
            .and_then(|_| extensions::of_client(legacy))
        {
            all.raw("extensions", &declared);
        }
    })
}

/// Whether a client with these capabilities can be asked this.
#[must_use]
pub fn is_declared(capabilities: &[u8], question: &Request) -> bool {
    let has = |path: &[&str]| json::at(capabilities, path).is_some();
    match question.method.as_str() {
        "sampling/createMessage" => has(&["sampling"]),
        "roots/list" => has(&["roots"]),
        "elicitation/create" => {
            match json::at(question.payload.body_bytes(), &["mode"]).and_then(json::text) {
                Some(mode) if mode == "url" => has(&["elicitation", "url"]),
                Some(_) | None => {
                    has(&["elicitation", "form"])
                        || has(&["elicitation"]) && !has(&["elicitation", "url"])
                }
            }
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
