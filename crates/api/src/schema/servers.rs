//! Schemas of servers and tools.

use model::ParticipantId;
use serde::Serialize;
use serde_json::Value;
use upstream::config::Transport;
use upstream::{Quarantined, Upstream};
use utoipa::ToSchema;
use wire::mcp::Era;
use wire::mcp::list::Item;

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

impl From<&Quarantined> for QuarantinedTool {
    fn from(tool: &Quarantined) -> Self {
        Self { name: tool.name.clone(), reason: tool.reason.clone() }
    }
}

impl Server {
    /// A server as the API shows it.
    pub(crate) fn of(upstream: &Upstream, topic: Option<&str>) -> Self {
        let (status, config) = (upstream.status(), &upstream.spec().config);
        let eras: Vec<&str> = status
            .eras
            .iter()
            .map(|era| match era {
                Era::Legacy => "legacy",
                Era::Modern => "modern",
            })
            .collect();
        let transport = match config.transport {
            Transport::Stdio(_) => "stdio",
            Transport::Http(_) => "http",
            Transport::Sse(_) => "sse",
            Transport::Demo => "demo",
            Transport::Participant => "participant",
        };
        let [tools, resources, templates, prompts] = status.listed;
        Self {
            name: status.name.to_string(),
            topic: topic.map(str::to_owned),
            state: status.state.as_str().into(),
            transport: transport.into(),
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
            quarantined: status.quarantined.iter().map(QuarantinedTool::from).collect(),
        }
    }
}

/// The tools that the caller may call or propose in a topic.
#[derive(Serialize, ToSchema)]
pub(crate) struct Tools {
    /// By server in the order of the configuration, then in the order of each server.
    pub tools: Vec<Tool>,
}

/// A tool.
#[derive(Serialize, ToSchema)]
pub(crate) struct Tool {
    /// Its public name.
    pub name: String,
    /// Its server.
    pub server: String,
    /// A title for people. The server writes it: untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description. The server writes it: untrusted.
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    #[serde(rename = "inputSchema")]
    pub input_schema: Option<Value>,
    /// JSON Schema of its structured result.
    #[serde(rename = "outputSchema", skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints about its effects. The server writes them: untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

impl Tool {
    /// A tool as its server lists it, under its public name.
    pub(crate) fn of(item: &Item, public: &str, server: &ParticipantId) -> Self {
        let raw = |key: &str| item.get(key).and_then(|raw| serde_json::from_slice(&raw).ok());
        let text = |key: &str| Some(json::text(&item.get(key)?)?.into_owned());
        Self {
            name: public.to_owned(),
            server: server.to_string(),
            title: text("title"),
            description: text("description"),
            input_schema: raw("inputSchema"),
            output_schema: raw("outputSchema"),
            annotations: raw("annotations"),
        }
    }
}
