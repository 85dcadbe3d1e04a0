//! Schema registry: `/buf.registry...` and `/buf.reflect...`, which the `buf` CLI calls. A participant sees the modules of the servers
//! and tools that its lists show.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use auth::Participant;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use model::{ListKind, ParticipantId, RefusalCode};
use platform::unix_ms;
use registry::connect::PROTO;
use registry::{Code, Error, Files, Source, Viewer, files_of, module_name};
use schema::Tool;
use tokio::task::spawn_blocking;
use wire::mcp::list::Item;

use crate::state::{Api, presented};
use crate::tools::manifests;

/// Answers one RPC.
pub(crate) async fn answer(State(api): State<Api>, parts: Parts, body: Bytes) -> Response {
    let is_proto = parts.headers.get(header::CONTENT_TYPE).is_some_and(|media| media == PROTO);
    if !is_proto {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, [("accept-post", PROTO)]).into_response();
    }
    match bytes_of(&api, &parts, body).await {
        Ok(answer) => ([(header::CONTENT_TYPE, PROTO)], answer).into_response(),
        Err(error) => refused(&error),
    }
}

fn refused(error: &Error) -> Response {
    let json = [(header::CONTENT_TYPE, "application/json")];
    let mut response = (error.code.status(), json, error.body()).into_response();
    if error.code == Code::Unauthenticated {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

async fn bytes_of(api: &Api, parts: &Parts, body: Bytes) -> Result<Bytes, Error> {
    let encoding = parts.headers.get(header::CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| encoding != "identity") {
        return Err(Error::new(Code::Unimplemented, "the registry reads no compressed requests"));
    }
    let caller = api.registry.asker(presented(parts), "for the schema registry").map_err(|refusal| {
        let code = match refusal.code {
            RefusalCode::Unauthenticated => Code::Unauthenticated,
            RefusalCode::RateLimited => Code::ResourceExhausted,
            _ => Code::PermissionDenied,
        };
        Error::new(code, refusal.message)
    })?;
    for (dispatch, _) in api.topics_of(&caller) {
        dispatch.wait_for_servers().await;
    }
    let (api, path) = (api.clone(), parts.uri.path().to_owned());
    // It converts and compiles.
    let work = spawn_blocking(move || {
        let modules = Modules::of(&api, &caller);
        let viewer = Viewer { id: caller.id.as_str(), source: &modules, now_ms: unix_ms() };
        api.shelf.answer(&path, &body, &viewer)
    });
    work.await.unwrap_or_else(|_| Err(Error::new(Code::Internal, "the answer was interrupted")))
}

/// The modules that a participant sees: of each server that its lists show in a topic that it may enter.
struct Modules(BTreeMap<String, Seen>);

/// What a participant sees of a server.
struct Seen {
    server: ParticipantId,
    /// All tools of the server.
    items: Vec<Item>,
    /// Those that the participant's lists show, by their own names.
    shown: HashSet<String>,
}

impl Modules {
    fn of(api: &Api, caller: &Participant) -> Self {
        let (names, mut modules) = (names(api), BTreeMap::new());
        for (dispatch, caller) in api.topics_of(caller) {
            let snapshot = dispatch.with(|topic| topic.list_snapshot_of(&caller.capabilities));
            let mut shown: HashMap<&ParticipantId, HashSet<String>> = HashMap::new();
            let listings = snapshot.list(ListKind::Tools);
            for listing in &listings {
                shown.entry(listing.upstream).or_default().insert(listing.own.to_string());
            }
            for (server, manifests) in manifests(&dispatch) {
                let Some((shown, name)) = shown.remove(&server).zip(names.get(&server)) else { continue };
                let empty = || Seen { server, items: Vec::new(), shown: HashSet::new() };
                let seen: &mut Seen = modules.entry(name.clone()).or_insert_with(empty);
                for item in manifests.iter().flat_map(|manifest| &manifest.list(ListKind::Tools).items) {
                    if !seen.items.iter().any(|known| known.key == item.key) {
                        seen.items.push(item.clone());
                    }
                }
                seen.shown.extend(shown);
            }
        }
        Self(modules)
    }
}

/// The names of the modules of all servers: those that a participant does not see have names too, so that all agree on them.
fn names(api: &Api) -> HashMap<ParticipantId, String> {
    let topics = api.sorted_topics(|_| true);
    let servers: BTreeSet<_> = topics.iter().flat_map(|topic| manifests(topic)).map(|(id, _)| id).collect();
    let mut taken = HashSet::new();
    let name = |server: ParticipantId| {
        let name = module_name(server.as_str(), &mut taken);
        (server, name)
    };
    servers.into_iter().map(name).collect()
}

impl Source for Modules {
    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    fn files(&self, module: &str) -> Option<Files> {
        let Seen { server, items, shown } = self.0.get(module)?;
        let read = |item: &Item| {
            let description = item.get("description").and_then(|raw| Some(json::text(&raw)?.into_owned()));
            (description, item.get("inputSchema").unwrap_or_default(), item.get("outputSchema"))
        };
        let texts: Vec<_> = items.iter().map(read).collect();
        let tools = items.iter().zip(&texts).map(|(item, (description, input, output))| Tool {
            name: &item.key,
            description: description.as_deref(),
            input,
            output: output.as_deref(),
        });
        Some(files_of(server.as_str(), &tools.collect::<Vec<_>>(), |tool| shown.contains(tool)))
    }
}
