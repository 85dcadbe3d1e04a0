//! How the pump's words are spelled at each side: eras, URIs, refusals, lists.
//!
//! Owns the small translations between the topic's words and the wire's. Must not know sockets or the topic's state.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use json::Splice;
use model::{Era, Refusal};
use upstream::{Answer, ClientProfile, Manifest, SessionKey};
use wire::mcp::{self, Params, translate, uris};
use wire::rpc::{self, Message, Shape};

use crate::caller::Caller;
use crate::operation::Operation;

/// Which sessions are this caller's own, with this request. Whether it needs its own the upstream decides.
pub fn session_key(caller: &Caller, hello: &ClientProfile) -> SessionKey {
    if caller.era() == Era::Legacy {
        return caller.key().clone();
    }
    SessionKey::Principal {
        participant: caller.participant().id.clone(),
        capabilities: hash(&hello.capabilities),
    }
}

/// What an upstream lists, as names and digests. Of one that lists in two eras, all that is in either.
pub fn manifest(manifests: &[Arc<Manifest>]) -> topic::Manifest {
    let items = |kind| {
        let mut items: Vec<topic::Item> = Vec::new();
        let mut known = HashSet::new();
        for item in manifests.iter().flat_map(|manifest| &manifest.list(kind).items) {
            if known.insert(item.key.as_str()) {
                items.push(topic::Item { own: item.key.as_str().into(), digest: hash(&item.raw) });
            }
        }
        items
    };
    topic::Manifest {
        tools: items(mcp::ListKind::Tools),
        prompts: items(mcp::ListKind::Prompts),
        resources: items(mcp::ListKind::Resources),
        templates: items(mcp::ListKind::Templates),
    }
}

fn hash(bytes: &Bytes) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// The list by whose name a change is told: templates change as resources do.
pub fn told_list(list: topic::ListKind) -> mcp::ListKind {
    match list {
        topic::ListKind::Tools => mcp::ListKind::Tools,
        topic::ListKind::Prompts => mcp::ListKind::Prompts,
        topic::ListKind::Resources | topic::ListKind::Templates => mcp::ListKind::Resources,
    }
}

/// The topic's word for one of the wire's lists.
pub fn topic_list(list: mcp::ListKind) -> topic::ListKind {
    match list {
        mcp::ListKind::Tools => topic::ListKind::Tools,
        mcp::ListKind::Prompts => topic::ListKind::Prompts,
        mcp::ListKind::Resources => topic::ListKind::Resources,
        mcp::ListKind::Templates => topic::ListKind::Templates,
    }
}

/// A request in the era of the session that takes it; `None` when it is in that era already.
pub fn for_session(message: &Message, from: Era, to: Era, hello: &ClientProfile) -> Option<Message> {
    if from == to {
        return None;
    }
    let frame = match to {
        Era::Modern => {
            // Questions are not translated yet: a server that knew of the client's capabilities might ask.
            translate::request_to_modern(message, hello.client_info.as_deref(), b"{}")
        }
        Era::Legacy => translate::request_to_legacy(message),
    };
    frame.and_then(|frame| Message::read(frame).ok())
}

/// The params of a call under the upstream's own name, in the form that MCPx has: the legacy one.
pub fn legacy_params(era: Era, message: &Message, own: Option<&str>) -> Option<String> {
    let translated = match era {
        Era::Legacy => None,
        Era::Modern => translate::request_to_legacy(message),
    };
    let message = match translated {
        Some(frame) => Message::read(frame).ok()?,
        None => message.clone(),
    };
    let read = Params::read(&message).ok()?;
    let mut splice = Splice::default();
    if let Some(own) = own {
        let mut edit = read.edit();
        edit.set_target(own);
        edit.finish(&mut splice);
    }
    let renamed = Message::read(message.edited(&splice)).ok()?;
    renamed.params().map(|params| String::from_utf8_lossy(params).into_owned())
}

/// An answer as its caller reads it: its id, its era, public URIs.
///
/// With it, the code of an error. `splice` has what was changed already.
pub fn answer(
    operation: &Operation,
    answer: &Answer,
    respell: &dyn Fn(&str) -> Option<String>,
    mut splice: Splice,
) -> (Bytes, Option<i64>) {
    let (to, from) = (operation.caller.era(), operation.session().map(|session| session.era()));
    if from.is_some_and(|from| from != to) {
        if answer.message.shape() == Shape::Result {
            translate::result(&answer.message, operation.method, to, &mut splice);
        } else {
            translate::error(&answer.message, operation.method, to, &mut splice);
        }
    }
    if answer.message.shape() == Shape::Result {
        self::respell(&answer.message, operation.method, respell, &mut splice);
    }
    let code = answer.message.error_object().map(|error| error.code);
    (rpc::one_line(answer.frame(splice)), code)
}

/// Public URIs in a result of `method`, or in a question of a server (then `method` is its own).
pub fn respell(
    message: &Message,
    method: &str,
    respell: &dyn Fn(&str) -> Option<String>,
    splice: &mut Splice,
) {
    // What names one thing twice cannot be mapped: it goes as it came, unmapped.
    if let Err(error) = uris::respell(message, method, respell, splice) {
        tracing::debug!(%error, "URIs of a message could not be mapped");
    }
}

/// A refusal as the caller of an operation reads it.
pub fn refusal(operation: &Operation, refusal: &Refusal) -> (Bytes, i64) {
    let era = operation.caller.era();
    let spelled = mcp::refusal::spell(refusal, era, operation.method, operation.target.as_deref());
    (spelled.answer(Some(&operation.request)), spelled.code)
}
