//! What the API's answers look like; the OpenAPI document follows from these types. Must not know where values come from.

mod people;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::IssuedToken;
use upstream::config::Transport;
use upstream::{Quarantined, Upstream};
use utoipa::{OpenApi as _, ToSchema};

pub(super) use people::{CapabilityChange, CapabilityChanged, GrantShown, PersonShown, PersonsShown};

/// Why a request was refused.
#[derive(Serialize, ToSchema)]
pub(super) struct Problem {
    /// A stable code.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The process is alive.
#[derive(Serialize, ToSchema)]
pub(super) struct Health {
    /// `alive`.
    pub status: String,
    /// The version of Portmoot.
    pub version: String,
}

/// Whether the first start of every server is over, and the audit log can be written.
#[derive(Serialize, ToSchema)]
pub(super) struct Ready {
    /// False while a server is starting for the first time, and while the audit log cannot be written.
    pub ready: bool,
    /// The servers that are not ready, with their states.
    pub servers: Vec<Waiting>,
    /// `unavailable` while the audit log cannot be written: what must be recorded is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<String>,
}

/// A server that is not ready.
#[derive(Serialize, ToSchema)]
pub(super) struct Waiting {
    /// Its name.
    pub name: String,
    /// `starting`, `degraded` or `down`.
    pub state: String,
    /// Why.
    pub reason: Option<String>,
}

/// All servers.
#[derive(Serialize, ToSchema)]
pub(super) struct Servers {
    /// In the order of the configuration.
    pub servers: Vec<Server>,
}

/// One server.
#[derive(Serialize, ToSchema)]
pub(super) struct Server {
    /// Its name.
    pub name: String,
    /// The topic that it is in, if it is a participant that serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// `starting`, `ready`, `degraded` or `down`.
    pub state: String,
    /// `stdio`, `http`, `sse`, `demo`, or `participant`: one that serves (`serves = true`).
    pub transport: String,
    /// The eras that it is known to speak.
    pub era: Option<String>,
    /// The revision of the shared session.
    pub version: Option<String>,
    /// Why it is not ready.
    pub reason: Option<String>,
    /// What its public names begin with.
    pub prefix: String,
    /// Tools that it lists.
    pub tools: usize,
    /// Resources that it lists.
    pub resources: usize,
    /// Resource templates that it lists.
    pub templates: usize,
    /// Prompts that it lists.
    pub prompts: usize,
    /// Sessions open with it.
    pub sessions: usize,
    /// Calls open at it.
    pub calls: usize,
    /// How often it was started again.
    pub restarts: u64,
    /// Process id of its shared session.
    pub pid: Option<u32>,
    /// Tools that are left out, each with its reason.
    pub quarantined: Vec<LeftOut>,
}

/// A tool that is left out.
#[derive(Serialize, ToSchema)]
pub(super) struct LeftOut {
    /// Its own name.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

impl From<&Quarantined> for LeftOut {
    fn from(tool: &Quarantined) -> Self {
        Self { name: tool.name.clone(), reason: tool.reason.clone() }
    }
}

impl Server {
    /// An upstream as it is now.
    pub fn of(upstream: &Upstream, topic: Option<&str>) -> Self {
        let status = upstream.status();
        let eras: Vec<&str> = status
            .eras
            .iter()
            .map(|era| match era {
                model::Era::Legacy => "legacy",
                model::Era::Modern => "modern",
            })
            .collect();
        let [tools, resources, templates, prompts] = status.listed;
        Self {
            name: status.name.to_string(),
            topic: topic.map(str::to_owned),
            state: status.state.as_str().into(),
            transport: match upstream.spec().config.transport {
                Transport::Stdio(_) => "stdio",
                Transport::Http(_) => "http",
                Transport::Sse(_) => "sse",
                Transport::Demo => "demo",
                Transport::Participant => "participant",
            }
            .into(),
            era: (!eras.is_empty()).then(|| eras.join("+")),
            version: status.version,
            reason: status.reason,
            prefix: upstream.spec().config.prefix.to_string(),
            tools,
            resources,
            templates,
            prompts,
            sessions: status.sessions,
            calls: status.calls,
            restarts: status.restarts,
            pid: status.pid,
            quarantined: status.quarantined.iter().map(LeftOut::from).collect(),
        }
    }
}

/// The tools that the caller sees in a topic.
#[derive(Serialize, ToSchema)]
pub(super) struct Tools {
    /// In the order of the configuration, then of each server.
    pub tools: Vec<Tool>,
}

/// One tool.
#[derive(Serialize, ToSchema)]
pub(super) struct Tool {
    /// Its public name.
    pub name: String,
    /// The server that has it.
    pub server: String,
    /// A title for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What its server says that it does. Untrusted.
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    #[serde(rename = "inputSchema")]
    pub input_schema: Option<Value>,
    /// JSON Schema of its structured result.
    #[serde(rename = "outputSchema", skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints of its server. Untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

/// The issued tokens.
#[derive(Serialize, ToSchema)]
pub(super) struct TokensShown {
    /// Without their secrets.
    pub tokens: Vec<Token>,
}

/// One issued token.
#[derive(Serialize, ToSchema)]
pub(super) struct Token {
    /// The participant that its bearer is.
    pub name: String,
    /// Its own capabilities, if it brings some.
    pub capabilities: Option<Vec<String>>,
    /// Its own topics, if it brings some.
    pub topics: Option<Vec<String>>,
    /// When it was issued, Unix milliseconds.
    pub created_ms: u64,
    /// When it ends, Unix milliseconds.
    pub expires_ms: Option<u64>,
}

impl Token {
    /// An issued token without its hash.
    pub fn of(token: &IssuedToken) -> Self {
        Self {
            name: token.name.clone(),
            capabilities: token.capabilities.clone(),
            topics: token.topics.clone(),
            created_ms: token.created_ms,
            expires_ms: token.expires_ms,
        }
    }
}

/// A wish for a token.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewToken {
    /// The participant that it makes of its bearer.
    pub name: String,
    /// Its capabilities; absent takes the configured ones, or a new participant's.
    pub capabilities: Option<Vec<String>>,
    /// Its topics; absent takes the configured ones, or `main`.
    pub topics: Option<Vec<String>>,
    /// How long it is valid, milliseconds.
    pub lifetime_ms: Option<u64>,
}

/// A new token; its secret is shown this once.
#[derive(Serialize, ToSchema)]
pub(super) struct TokenMade {
    /// What is known of it.
    #[serde(flatten)]
    pub shown: Token,
    /// The token.
    pub token: String,
}

/// What the routes are, for the document; the functions are never called.
mod paths {
    #![allow(dead_code)]
    use crate::api::schema::{
        Health, NewToken, Problem, Ready, Server, Servers, TokenMade, TokensShown, Tool, Tools,
    };
    use utoipa::OpenApi;

    #[utoipa::path(get, path = "/healthz", responses((status = 200, body = Health)))]
    fn healthz() {}
    #[utoipa::path(get, path = "/readyz", responses((status = 200, body = Ready), (status = 503, body = Ready)))]
    fn readyz() {}
    #[utoipa::path(get, path = "/metrics", responses((status = 200, body = String, content_type = "application/openmetrics-text")))]
    fn metrics() {}
    #[utoipa::path(get, path = "/api/v1/servers", responses((status = 200, body = Servers), (status = "4XX", body = Problem)))]
    fn servers() {}
    #[utoipa::path(get, path = "/api/v1/servers/{name}", params(("name" = String, Path)),
        responses((status = 200, body = Server), (status = "4XX", body = Problem)))]
    fn server() {}
    #[utoipa::path(get, path = "/api/v1/tools", params(("topic" = Option<String>, Query)),
        responses((status = 200, body = Tools), (status = "4XX", body = Problem)))]
    fn tools() {}
    #[utoipa::path(get, path = "/api/v1/tools/{name}", params(("name" = String, Path), ("topic" = Option<String>, Query)),
        responses((status = 200, body = Tool), (status = "4XX", body = Problem)))]
    fn tool() {}
    #[utoipa::path(get, path = "/api/v1/tokens", responses((status = 200, body = TokensShown), (status = "4XX", body = Problem)))]
    fn tokens() {}
    #[utoipa::path(post, path = "/api/v1/tokens", request_body = NewToken,
        responses((status = 201, body = TokenMade), (status = "4XX", body = Problem)))]
    fn issue() {}
    #[utoipa::path(delete, path = "/api/v1/tokens/{name}", params(("name" = String, Path)),
        responses((status = 204), (status = "4XX", body = Problem)))]
    fn revoke() {}

    #[derive(OpenApi)]
    #[openapi(
        info(title = "Portmoot", description = "What `portmoot` asks of a running gateway."),
        paths(healthz, readyz, metrics, servers, server, tools, tool, tokens, issue, revoke)
    )]
    pub(super) struct Document;
}

/// This part of the OpenAPI document.
pub(super) fn document() -> utoipa::openapi::OpenApi {
    paths::Document::openapi()
}
