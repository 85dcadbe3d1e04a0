//! Servers: `/api/v1/servers`.

use auth::Participant;
use axum::Json;
use axum::extract::{Path, State};
use model::{Refusal, RefusalCode};
use serde::Serialize;
use upstream::Upstream;
use utoipa::ToSchema;

use crate::error::{ApiResult, Problem};
use crate::state::{Api, Caller};

const SERVERS: &str = "portmoot/servers";

/// All servers. Needs `portmoot/servers`.
#[utoipa::path(
    get,
    path = "/api/v1/servers",
    responses((status = 200, body = Servers), (status = "4XX", body = Problem))
)]
pub(crate) async fn servers(State(api): State<Api>, Caller(caller): Caller) -> ApiResult<Json<Servers>> {
    api.authorize(&caller, SERVERS, None)?;
    Ok(Json(Servers { servers: all_servers(&api, &caller) }))
}

/// One server. Needs `portmoot/servers`.
#[utoipa::path(
    get,
    path = "/api/v1/servers/{name}",
    params(("name" = String, Path)),
    responses((status = 200, body = Server), (status = "4XX", body = Problem))
)]
pub(crate) async fn server(
    State(api): State<Api>,
    Caller(caller): Caller,
    Path(name): Path<String>,
) -> ApiResult<Json<Server>> {
    api.authorize(&caller, SERVERS, None)?;
    let named = all_servers(&api, &caller).into_iter().filter(|server| server.name == name);
    // A participant may serve in several topics: where it is connected, if anywhere.
    let found = named.min_by_key(|server| server.state == upstream::State::Down.as_str());
    let unknown = || {
        Refusal::new(RefusalCode::UnknownTarget, format!("there is no server `{name}`"))
            .hint("list them: portmoot servers ls")
    };
    Ok(Json(found.ok_or_else(unknown)?))
}

/// The configured servers, then the participants that serve, once for each topic that the caller may know of.
fn all_servers(api: &Api, caller: &Participant) -> Vec<Server> {
    let configured = api.registry.upstreams();
    let mut servers: Vec<Server> = configured.iter().map(|upstream| Server::of(upstream, None)).collect();
    for dispatch in api.sorted_topics(|topic| api.registry.may_know(caller, topic)) {
        let serving = dispatch.servers().into_iter().filter(|server| server.serves());
        servers.extend(serving.map(|server| Server::of(&server.upstream, Some(dispatch.name().as_str()))));
    }
    servers
}

/// All servers.
#[derive(Serialize, ToSchema)]
pub(crate) struct Servers {
    /// In the order of the configuration, then the participants that serve, by topic.
    pub servers: Vec<Server>,
}

/// A server.
#[derive(Serialize, ToSchema)]
pub(crate) struct Server {
    /// Its name.
    pub name: String,
    /// Its topic, if it is a participant that serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// `starting`, `ready`, `degraded` or `down`.
    pub state: String,
    /// `stdio`, `http`, `sse`, `demo`, or `participant`: one that serves (`serves = true`).
    pub transport: String,
    /// The eras that it is known to speak.
    pub era: Option<String>,
    /// The protocol revision of the shared session.
    pub version: Option<String>,
    /// Why it is not ready.
    pub reason: Option<String>,
    /// The prefix of its public names.
    pub prefix: String,
    /// Tools that it lists.
    pub tools: usize,
    /// Resources that it lists.
    pub resources: usize,
    /// Resource templates that it lists.
    pub templates: usize,
    /// Prompts that it lists.
    pub prompts: usize,
    /// Open sessions with it.
    pub sessions: usize,
    /// Open calls at it.
    pub calls: usize,
    /// Restarts after an unexpected end.
    pub restarts: u64,
    /// Process id of its shared session.
    pub pid: Option<u32>,
    /// Tools that are not listed, with the reasons.
    pub quarantined: Vec<QuarantinedTool>,
}

/// A tool that is not listed.
#[derive(Serialize, ToSchema)]
pub(crate) struct QuarantinedTool {
    /// Its name at its server.
    pub name: String,
    /// Why it is not listed.
    pub reason: String,
}

impl Server {
    /// A server as the API shows it.
    pub(crate) fn of(upstream: &Upstream, topic: Option<&str>) -> Self {
        let (status, config) = (upstream.status(), &upstream.spec().config);
        let eras: Vec<&str> = status.eras.iter().map(Into::into).collect();
        let quarantined = status.quarantined.into_iter();
        let quarantined = quarantined.map(|tool| QuarantinedTool { name: tool.name, reason: tool.reason });
        let [tools, resources, templates, prompts] = status.listed;
        Self {
            name: status.name.to_string(),
            topic: topic.map(str::to_owned),
            state: status.state.as_str().into(),
            transport: <&str>::from(&config.transport).to_owned(),
            era: (!eras.is_empty()).then(|| eras.join("+")),
            version: status.version,
            reason: status.reason,
            prefix: config.prefix.to_string(),
            tools,
            resources,
            templates,
            prompts,
            sessions: status.sessions,
            calls: status.calls,
            restarts: status.restarts,
            pid: status.pid,
            quarantined: quarantined.collect(),
        }
    }
}
