//! What a modern client may say (2026-07-28), whatever carries it.
//!
//! Owns the meaning of each stateless request: what is answered here, what goes to the pump, and listen streams. Must
//! not know HTTP or pipes; the doors have checked headers.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use model::{Era, Refusal, RefusalCode};
use tokio::time::timeout;
use topic::Target;
use upstream::ClientProfile;
use wire::mcp::header::{HeaderError, HeaderParam};
use wire::mcp::{ListKind, Params, Version, method, result, task};
use wire::rpc::{self, Shape, code};

use crate::caller::{Caller, Filter, Open};
use crate::operation::Operation;
use crate::pump::{LISTS, Pump, Routed, Watched};
use crate::stream::Stream;
use crate::{greeting, lists, own};

/// Resources that one listen request may name, one that is named again included.
pub const LISTEN_URIS_MAX: usize = 256;
/// Tasks that one listen request may name, one that is named again included.
pub const LISTEN_TASKS_MAX: usize = 256;
/// How long the acknowledgement of a listen request waits for servers that are to tell of its resources, and then of its
/// tasks.
const FOLLOW_WAIT: Duration = Duration::from_secs(5);

/// What a modern request says of its caller. Absent capabilities are none.
pub fn hello(params: &Params<'_>) -> ClientProfile {
    ClientProfile {
        capabilities: params
            .client_capabilities()
            .map_or_else(|| Bytes::from_static(b"{}"), Bytes::copy_from_slice),
        client_info: params.client_info().map(Bytes::copy_from_slice),
        version: Version::NEWEST,
    }
}

/// What a modern request over a pipe must say, where no header repeats it.
///
/// # Errors
/// The error to answer with.
pub fn check(params: &Params<'_>) -> Result<(), HeaderError> {
    let asked = params.protocol_version().unwrap_or_default();
    if Version::parse(&asked).is_none_or(|version| version.era() != Era::Modern) {
        return Err(HeaderError::unsupported_version(&asked));
    }
    let refused =
        |code, message: &str| HeaderError { status: 400, code, message: message.to_owned(), data: None };
    if !params.client_capabilities().is_some_and(json::is_object) {
        return Err(refused(
            code::INVALID_PARAMS,
            "`_meta` lacks io.modelcontextprotocol/clientCapabilities",
        ));
    }
    match params.known() {
        Some(known) if !known.is_in(Era::Modern) => Err(refused(code::METHOD_NOT_FOUND, "method not found")),
        Some(_) | None => Ok(()),
    }
}

/// Takes one message; answers go to `out`. Gives what a closed stream abandons.
pub fn receive(
    pump: &Arc<Pump>,
    caller: &Arc<Caller>,
    params: &Params<'_>,
    hello: ClientProfile,
    out: &Arc<Stream>,
) -> Option<Arc<dyn Open>> {
    let message = params.message();
    match (message.shape(), message.method()) {
        (Shape::Request, "server/discover") => {
            let Some((operation, Routed::Gateway)) = pump.admit(caller, params, out) else { return None };
            let pump = Arc::clone(pump);
            tokio::spawn(async move {
                pump.wait_for_servers().await;
                let result = rpc::result(&operation.request, &greeting::discover(&pump));
                pump.answer_here(&operation, Ok(result));
            });
            None
        }
        (Shape::Request, name) if needs_tasks(name, params) && !task::declares(&hello.capabilities) => {
            let required = format!("{{\"extensions\":{}}}", task::ABILITIES);
            let error = HeaderError::missing_capability(&required);
            out.answer_with(error.answer(params.message().id()), Some(error.code));
            None
        }
        (Shape::Request, "subscriptions/listen") => listen(pump, caller, params, hello, out),
        (Shape::Request, name) => {
            if let Some(waiting) = own::resume(pump, caller, params, out) {
                return Some(waiting);
            }
            let operation = match method::lookup(name).and_then(|known| known.list) {
                Some(list) => lists::answer(pump, caller, list, params, hello, out)?,
                None => pump.request(caller, params, &hello, out)?,
            };
            Some(operation)
        }
        (Shape::Notification, "notifications/cancelled") => {
            let open = caller.find(&params.request_id()?)?;
            open.cancel();
            None
        }
        // The core protocol has no other notification of a client, and a modern client sends no answers.
        (Shape::Notification | Shape::Result | Shape::Error, _) => None,
    }
}

/// Whether only a client that declares the tasks extension may send this (its "Capability Negotiation").
fn needs_tasks(method: &str, params: &Params<'_>) -> bool {
    let watches = || task::watched(params).ok();
    match method {
        "tasks/get" | "tasks/update" | "tasks/cancel" => true,
        "subscriptions/listen" => watches().is_some_and(|tasks| !tasks.is_empty()),
        _ => false,
    }
}

/// The headers that a call of this tool must mirror, by its schema (2026-07-28, "x-mcp-header").
pub fn mirrored(pump: &Pump, caller: &Caller, params: &Params<'_>) -> Vec<HeaderParam> {
    if params.method() != "tools/call" {
        return Vec::new();
    }
    let Some(wire::mcp::Target::Name(name)) = params.target() else { return Vec::new() };
    let found = pump.with(|topic| {
        let route = topic.lookup(caller.link(), Target::Tool(name))?;
        Some((route.upstream.clone(), route.own.to_owned()))
    });
    let Some((upstream, own)) = found else { return Vec::new() };
    let seats = pump.seats();
    let Some(seat) = seats.iter().find(|seat| seat.id == upstream) else { return Vec::new() };
    seat.upstream.manifest_in(Era::Modern).annotations.get(&own).cloned().unwrap_or_default()
}

/// A listen request: acknowledged at once, then live until either side ends it (2026-07-28, "Subscriptions").
struct Listening {
    pump: Arc<Pump>,
    operation: Arc<Operation>,
    lists: Vec<ListKind>,
    uris: Vec<String>,
    tasks: Vec<String>,
    watched: OnceLock<Vec<Watched>>,
    hello: ClientProfile,
}

impl Listening {
    /// Has resources and tasks followed, then says so: nothing that is told meanwhile is missed. A server that keeps us
    /// waiting delays that only for a while.
    async fn begin(self: Arc<Self>) {
        let hello = &self.hello;
        let mut following = pin!(self.follow(hello));
        let followed = timeout(FOLLOW_WAIT, &mut following).await.is_ok();
        let caller = &self.operation.caller;
        let (tasks, watched) = (&self.tasks, &self.watched);
        let told = self.pump.watch_tasks(caller, hello, tasks, FOLLOW_WAIT, watched).await;
        self.acknowledge(&told);
        if !followed {
            following.await;
        }
        // It may have ended while its resources were being followed.
        if self.operation.is_over() {
            caller.finish(self.operation.id);
            self.end();
        }
    }

    async fn follow(&self, hello: &ClientProfile) {
        for uri in &self.uris {
            if let Err(refusal) = self.pump.follow(&self.operation.caller, hello, uri).await {
                tracing::debug!(%refusal, "a resource cannot be followed");
            }
        }
    }

    fn acknowledge(&self, tasks: &[String]) {
        let Operation { caller, request, out, .. } = &*self.operation;
        let params = acknowledgement(&self.lists, &self.uris, tasks);
        let said = rpc::notification("notifications/subscriptions/acknowledged", Some(params.as_bytes()));
        if !caller.acknowledge(request, out, &said, tasks) {
            let what = "more was told before the listen request was acknowledged than there is room for";
            let refusal = Refusal::new(RefusalCode::Overloaded, what).hint("send it again");
            self.pump.answer_here(&self.operation, Err(refusal));
        }
    }

    fn end(&self) {
        self.operation.caller.unlisten(&self.operation.request, &self.operation.out);
        for uri in &self.uris {
            if !self.operation.caller.follows(uri) {
                self.pump.unfollow(&self.operation.caller, uri);
            }
        }
        let watched = self.watched.get().map(Vec::as_slice).unwrap_or_default();
        self.pump.unwatch_tasks(&self.operation.caller, &self.hello, watched);
    }
}

impl Open for Listening {
    fn cancel(&self) {
        self.end();
        let result = result::listened(&self.operation.request);
        self.pump.answer_here(&self.operation, Ok(rpc::result(&self.operation.request, &result)));
    }

    fn refuse(&self, refusal: &Refusal) {
        self.end();
        self.operation.refuse(refusal);
    }

    fn take_back(&self) {}
}

fn listen(
    pump: &Arc<Pump>,
    caller: &Arc<Caller>,
    params: &Params<'_>,
    hello: ClientProfile,
    out: &Arc<Stream>,
) -> Option<Arc<dyn Open>> {
    let (operation, Routed::Gateway) = pump.admit(caller, params, out)? else { return None };
    let wanted = match filter(params) {
        Ok(wanted) => wanted,
        Err(why) => {
            let refusal = Refusal::new(RefusalCode::Malformed, why);
            pump.answer_here(&operation, Err(refusal));
            return None;
        }
    };
    // What this caller may not read it hears nothing of, and is not told that it exists.
    let uris: Vec<String> = wanted.uris.into_iter().filter(|uri| pump.may_follow(caller, uri)).collect();
    let filter = Filter {
        lists: wanted.lists.clone(),
        uris: uris.iter().cloned().collect(),
        tasks: wanted.tasks.iter().cloned().collect(),
    };
    if !caller.listen(operation.request.clone(), filter, Arc::clone(&operation.out)) {
        let refusal = Refusal::new(RefusalCode::Overloaded, "too many listen requests are open");
        pump.answer_here(&operation, Err(refusal));
        return None;
    }
    let listening = Arc::new(Listening {
        pump: Arc::clone(pump),
        operation: Arc::clone(&operation),
        lists: wanted.lists,
        uris,
        tasks: wanted.tasks,
        watched: OnceLock::new(),
        hello,
    });
    caller.begin(operation.id, operation.request.clone(), listening.clone());
    tokio::spawn(Arc::clone(&listening).begin());
    Some(listening)
}

struct Wanted {
    lists: Vec<ListKind>,
    uris: Vec<String>,
    tasks: Vec<String>,
}

fn filter(params: &Params<'_>) -> Result<Wanted, String> {
    let message = params.message();
    let filter = params.get("notifications").ok_or("`params.notifications` is missing")?;
    let members = json::members(message.frame(), filter.span).map_err(|error| error.to_string())?;
    let on = |key: &str| members.get(key).is_some_and(|member| member.raw == b"true");
    let lists = LISTS.iter().filter(|(key, _)| on(key)).map(|(_, list)| *list).collect();
    let mut uris = Vec::new();
    if let Some(member) = members.get("resourceSubscriptions") {
        let wrong = "`resourceSubscriptions` must be an array of strings";
        let spans = json::elements(message.frame(), member.span).map_err(|_| wrong)?;
        if spans.len() > LISTEN_URIS_MAX {
            return Err(format!("at most {LISTEN_URIS_MAX} resources in one listen request"));
        }
        for span in spans {
            uris.push(json::text(span.of(message.frame())).ok_or(wrong)?.into_owned());
        }
    }
    let tasks = task::watched(params).map_err(|malformed| malformed.message)?;
    if tasks.len() > LISTEN_TASKS_MAX {
        return Err(format!("at most {LISTEN_TASKS_MAX} tasks in one listen request"));
    }
    let (uris, tasks) = (distinct(uris), distinct(tasks));
    Ok(Wanted { lists, uris, tasks })
}

/// Each once, in the order in which they came.
fn distinct(texts: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    texts.into_iter().filter(|text| seen.insert(text.clone())).collect()
}

fn acknowledgement(lists: &[ListKind], uris: &[String], tasks: &[String]) -> String {
    let mut members: Vec<String> = LISTS
        .iter()
        .filter(|(_, list)| lists.contains(list))
        .map(|(key, _)| format!("\"{key}\":true"))
        .collect();
    for (key, texts) in [("resourceSubscriptions", uris), ("taskIds", tasks)] {
        if !texts.is_empty() {
            let texts: Vec<String> = texts.iter().map(|text| json::quote(text)).collect();
            members.push(format!("\"{key}\":[{}]", texts.join(",")));
        }
    }
    format!("{{\"notifications\":{{{}}}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wire::rpc::Message;

    use super::*;

    fn wanted(filter: &Value) -> Result<Wanted, String> {
        let params = json!({ "notifications": filter }).to_string();
        let id = rpc::Id::number(1);
        let message =
            Message::read(rpc::request(&id, "subscriptions/listen", Some(params.as_bytes()))).unwrap();
        super::filter(&Params::read(&message).unwrap())
    }

    #[test]
    fn a_listen_request_names_as_much_as_it_may_and_no_more() {
        for (key, max) in [("resourceSubscriptions", LISTEN_URIS_MAX), ("taskIds", LISTEN_TASKS_MAX)] {
            let names = |many: usize| (0..many).map(|number| number.to_string()).collect::<Vec<_>>();
            let Wanted { uris, tasks, .. } = wanted(&json!({ (key): names(max) })).unwrap();
            assert_eq!([uris, tasks].concat(), names(max));
            let refused = wanted(&json!({ (key): names(max + 1) })).err().unwrap();
            assert!(refused.starts_with(&format!("at most {max} ")), "{refused}");
            assert!(wanted(&json!({ (key): vec!["again"; max + 1] })).is_err());
            assert!(wanted(&json!({ (key): [1] })).is_err());
        }
        let twice =
            wanted(&json!({ "taskIds": ["t", "u", "t"], "resourceSubscriptions": ["a", "a"] })).unwrap();
        assert_eq!((twice.tasks, twice.uris), (vec!["t".to_owned(), "u".to_owned()], vec!["a".to_owned()]));
    }
}
