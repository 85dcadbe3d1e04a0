//! Servers: `/api/v1/servers`.

use std::{sync::Arc, time::Duration};

use auth::Participant;
use axum::Json;
use axum::extract::{Path, Query, State};
use control::Pins;
use identity::SERVERS;
use model::{Refusal, RefusalCode};
use serde::{Deserialize, Serialize};
use tokio::{task::spawn_blocking, time::sleep};
use upstream::config::{PinMode, SandboxSupport, Start, StdioConfig, Transport, support};
use upstream::{QuarantinedTool, Root, ServerStatus, Upstream, Usage, usage};
use utoipa::ToSchema;
use vetting::FlaggedText;
use wire::time::rfc3339;

use crate::error::{ApiResult, Problem};
use crate::state::{Api, Caller};

/// Longest wait for a line, seconds.
const WAIT_SECONDS_MAX: u64 = 30;

/// All servers. Needs `portmoot/servers`.
#[utoipa::path(
    get,
    path = "/api/v1/servers",
    responses((status = 200, body = Servers), (status = "4XX", body = Problem))
)]
pub(crate) async fn servers(
    State(api): State<Api>,
    Caller(caller): Caller,
) -> ApiResult<Json<Servers>> {
    api.authorize(&caller, SERVERS, None)?;
    Ok(Json(Servers {
        servers: shown(&api, found(&api, &caller)).await,
    }))
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
    let (upstream, topic) = named(&api, &caller, &name)?;
    let shown = shown(&api, vec![(upstream, topic)]).await;
    let Some(server) = shown.into_iter().next() else {
        let what = format!("there is no server `{name}`");
        return Err(Refusal::new(RefusalCode::UnknownTarget, what).into());
    };
    Ok(Json(server))
}

/// The last lines that the processes of a server wrote to stderr. Needs `portmoot/servers`.
///
/// With `wait_seconds` (at most 30) the answer waits for a line after the one with the number
/// `after`.
#[utoipa::path(
    get,
    path = "/api/v1/servers/{name}/logs",
    params(("name" = String, Path), ("after" = Option<u64>, Query), ("wait_seconds" = Option<u64>, Query)),
    responses((status = 200, body = ServerLog), (status = "4XX", body = Problem))
)]
pub(crate) async fn logs(
    State(api): State<Api>,
    Caller(caller): Caller,
    Path(name): Path<String>,
    Query(LogQuery {
        after,
        wait_seconds,
    }): Query<LogQuery>,
) -> ApiResult<Json<ServerLog>> {
    api.authorize(&caller, SERVERS, None)?;
    let (upstream, _) = named(&api, &caller, &name)?;
    let log = upstream.stderr();
    let after = after.unwrap_or(0);
    let wait = Duration::from_secs(wait_seconds.unwrap_or(0).min(WAIT_SECONDS_MAX));
    if !wait.is_zero() {
        let stops = api.registry.topics().into_iter().next();
        let stopped = async move {
            match &stops {
                Some(dispatch) => dispatch.stopped().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = log.wait_after(after) => {}
            () = sleep(wait) => {}
            () = stopped => {}
        }
        // What the caller may do may have changed meanwhile.
        let Some(caller) = api.registry.known(&caller.id) else {
            let what = "this token is not valid any more";
            return Err(Refusal::new(RefusalCode::Unauthenticated, what).into());
        };
        api.authorize(&caller, SERVERS, None)?;
    }
    let (lines, newest) = log.after(after);
    let lines = lines.into_iter().map(|line| LogLine {
        number: line.number,
        at: rfc3339(line.at_ms),
        pid: line.pid,
        text: line.text.to_string(),
    });
    let has_process = upstream.spec().config.transport.child().is_some();
    Ok(Json(ServerLog {
        server: name,
        has_process,
        lines: lines.collect(),
        newest,
    }))
}

/// The query of a log.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogQuery {
    after: Option<u64>,
    wait_seconds: Option<u64>,
}

/// A server, and the topic in which it serves if it is a participant.
type Found = (Arc<Upstream>, Option<String>);

/// The server of this name. A participant may serve in several topics: where it is connected, if
/// anywhere.
fn named(api: &Api, caller: &Participant, name: &str) -> Result<Found, Refusal> {
    let mut all = found(api, caller);
    all.retain(|(upstream, _)| upstream.spec().name() == name);
    let found = all
        .into_iter()
        .min_by_key(|(upstream, _)| upstream.status().state == upstream::ServerState::Down);
    found.ok_or_else(|| {
        Refusal::new(
            RefusalCode::UnknownTarget,
            format!("there is no server `{name}`"),
        )
        .hint("list them: portmoot servers ls")
    })
}

/// The configured servers, then the participants that serve, once for each topic that the caller
/// may know of.
fn found(api: &Api, caller: &Participant) -> Vec<Found> {
    let mut all: Vec<Found> = api
        .registry
        .upstreams()
        .into_iter()
        .map(|upstream| (upstream, None))
        .collect();
    for dispatch in api
        .registry
        .sorted_topics(|topic| api.registry.may_know(caller, topic))
    {
        let serving = dispatch
            .servers()
            .into_iter()
            .filter(|server| server.serves());
        all.extend(
            serving.map(|server| (server.upstream.clone(), Some(dispatch.name().to_string()))),
        );
    }
    all
}

/// Servers as the API shows them.
async fn shown(api: &Api, found: Vec<Found>) -> Vec<Server> {
    let statuses: Vec<ServerStatus> = found
        .iter()
        .map(|(upstream, _)| upstream.status())
        .collect();
    let roots: Vec<Root> = statuses
        .iter()
        .flat_map(|status| status.processes.iter().copied())
        .collect();
    // It reads the table of all processes.
    let usages = spawn_blocking(move || usage(&roots))
        .await
        .unwrap_or_default();
    let mut usages = usages.into_iter();
    let mut servers = Vec::new();
    for ((upstream, topic), status) in found.iter().zip(statuses) {
        let of_server: Vec<Usage> = usages.by_ref().take(status.processes.len()).collect();
        servers.push(Server::of(
            (upstream, status),
            &of_server,
            topic.as_deref(),
            &api.registry.pins,
        ));
    }
    servers
}

/// The end of a server's log.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServerLog {
    /// The server.
    pub server: String,
    /// Whether the gateway starts it as a process; others have no stderr.
    pub has_process: bool,
    /// The lines, oldest first: at most 1,000 and 256 KiB are kept.
    pub lines: Vec<LogLine>,
    /// The number of the newest line, for `after`.
    pub newest: u64,
}

/// A line of a server's log.
#[derive(Serialize, ToSchema)]
pub(crate) struct LogLine {
    /// Its number.
    pub number: u64,
    /// When it was written, RFC 3339.
    pub at: String,
    /// The process.
    pub pid: u32,
    /// The text. The server writes it: untrusted, with control characters.
    pub text: String,
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
    /// `starting`, `ready`, `idle` (unused: it is listed, and starts at its first use), `degraded`,
    /// `down` or `needs_login`.
    pub state: String,
    /// `stdio`, `http`, `sse`, `proto` (over gRPC too), `openapi`, `demo`, `participant`: one that
    /// serves (`serves = true`), or `unusable`: its configuration cannot be used.
    pub transport: String,
    /// The families of protocol revisions that it is known to speak: `legacy` (2024-11-05 to
    /// 2025-11-25), `modern` (2026-07-28).
    pub era: Option<String>,
    /// The protocol revision of the shared session.
    pub version: Option<String>,
    /// Why it is not ready.
    pub reason: Option<String>,
    /// The cause of its last failure, such as an exit code or an HTTP status, while it is not
    /// ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Advice to operators about that failure, if there is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The last lines that the process which failed wrote to stderr. The server writes them:
    /// untrusted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
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
    /// `demand` or `always`: when the gateway runs it. Other servers have no process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Open sessions with it.
    pub sessions: usize,
    /// Those of them that belong to single clients.
    pub own_sessions: usize,
    /// Its processes, with those that they started.
    pub processes: usize,
    /// Their resident memory. What several of them share counts for each.
    pub memory_bytes: u64,
    /// The participants whose clients use it.
    pub users: Vec<String>,
    /// Why all clients share one session although some could have their own: a second process did
    /// not start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares_one: Option<String>,
    /// Why a client's own session did not open last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_session_failed: Option<String>,
    /// Open calls at it.
    pub calls: usize,
    /// Restarts after an unexpected end.
    pub restarts: u64,
    /// Process id of its shared session.
    pub pid: Option<u32>,
    /// What confines its process: `none`, or `files` for a sandbox. Other servers have no process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// What the kernel cannot keep a process in a sandbox from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sandbox_gaps: Vec<String>,
    /// What changes of its definitions lead to: `off`, `warn`, `block`.
    pub pins: String,
    /// Definitions that differ from what is pinned, or wait for a first approval.
    pub changed: Vec<String>,
    /// Texts of it that may instruct models, or hide something from people.
    pub findings: Vec<Flagged>,
    /// Tools that are not listed, because their schemas cannot be used.
    pub unlisted_tools: Vec<UnusableTool>,
    /// Tools whose arguments are any object, because the schemas that a server of proto-mcp sent
    /// cannot be used.
    pub untyped_tools: Vec<UnusableTool>,
    /// Tools that its configuration hides, by its own names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden_tools: Vec<String>,
    /// Lines of its configuration about tools that have another effect than they seem to have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A text that may instruct models, or hide something from people.
#[derive(Serialize, ToSchema)]
pub(crate) struct Flagged {
    /// `tool`, `prompt`, `resource`, `template` or `instructions`.
    pub part: String,
    /// The server's own name of it.
    pub name: String,
    /// Where in its definition.
    pub path: String,
    /// Why: `hidden_characters`, `comment`, `prompt_markup`, `overrides_instructions`,
    /// `keeps_secret`, `asks_for_secrets`, `sends_away`, `steers_tools`, `runs_command`,
    /// `encoded_text`, `imitates_name`.
    pub flag: String,
    /// The text from there on. The server writes it: untrusted; hidden characters are escaped.
    pub excerpt: String,
}

/// A tool whose schema cannot be used.
#[derive(Serialize, ToSchema)]
pub(crate) struct UnusableTool {
    /// Its name at its server.
    pub name: String,
    /// Why not.
    pub reason: String,
}

fn sandbox(child: &StdioConfig) -> &'static str {
    if child.confinement.files.is_some() {
        "files"
    } else {
        "none"
    }
}

fn start(start: Start) -> &'static str {
    match start {
        Start::Demand => "demand",
        Start::Always => "always",
    }
}

fn mode(mode: PinMode) -> &'static str {
    match mode {
        PinMode::Off => "off",
        PinMode::Warn => "warn",
        PinMode::Block => "block",
    }
}

fn changed(pins: &Pins, server: &str) -> Vec<String> {
    let mut changed = Vec::new();
    for row in pins.rows(server) {
        if row.waiting.is_some() {
            let (part, name) = &row.key;
            // Instructions have no name.
            changed.push(format!("{} {name}", part.as_str()).trim_end().to_owned());
        }
    }
    changed
}

impl From<FlaggedText> for Flagged {
    fn from(text: FlaggedText) -> Self {
        Self {
            part: text.part.as_str().to_owned(),
            name: text.name,
            path: text.path,
            flag: text.flag.as_str().to_owned(),
            excerpt: text.excerpt,
        }
    }
}

impl From<QuarantinedTool> for UnusableTool {
    fn from(tool: QuarantinedTool) -> Self {
        Self {
            name: tool.name,
            reason: tool.reason,
        }
    }
}

fn gaps(child: &StdioConfig) -> Vec<String> {
    if child.confinement.files.is_none() {
        return Vec::new();
    }
    match support() {
        SandboxSupport::Files(gaps) => gaps.into_iter().map(str::to_owned).collect(),
        SandboxSupport::None(why) => vec![format!("anything: {why}")],
    }
}

impl Server {
    /// A server as the API shows it.
    fn of(
        (upstream, status): (&Upstream, ServerStatus),
        usages: &[Usage],
        topic: Option<&str>,
        pins: &Pins,
    ) -> Self {
        let config = &upstream.spec().config;
        let eras: Vec<&str> = status.eras.iter().map(Into::into).collect();
        let [tools, resources, templates, prompts] = status.listed;
        Self {
            name: status.name.to_string(),
            topic: topic.map(str::to_owned),
            state: status.state.as_str().into(),
            transport: <&str>::from(&config.transport).to_owned(),
            era: (!eras.is_empty()).then(|| eras.join("+")),
            version: status.version,
            reason: status.reason,
            cause: status.cause,
            hint: if let Transport::Unusable { fix, .. } = &config.transport {
                Some(fix.clone())
            } else {
                status.hint.map(str::to_owned)
            },
            stderr: status
                .last_words
                .iter()
                .map(|line| line.to_string())
                .collect(),
            prefix: config.prefix.to_string(),
            tools,
            resources,
            templates,
            prompts,
            start: config
                .transport
                .child()
                .map(|_| start(config.start).to_owned()),
            sessions: status.sessions,
            own_sessions: status.own_sessions,
            processes: usages.iter().map(|usage| usage.processes).sum(),
            memory_bytes: usages.iter().map(|usage| usage.memory_bytes).sum(),
            users: status.users.iter().map(ToString::to_string).collect(),
            shares_one: status.single,
            own_session_failed: status.own_cause,
            calls: status.calls,
            restarts: status.restarts,
            pid: status.pid,
            sandbox: config
                .transport
                .child()
                .map(|child| sandbox(child).to_owned()),
            pins: mode(config.pins.mode).to_owned(),
            changed: changed(pins, upstream.spec().name()),
            findings: pins
                .findings(upstream.spec().name())
                .into_iter()
                .map(Flagged::from)
                .collect(),
            sandbox_gaps: config.transport.child().map(gaps).unwrap_or_default(),
            unlisted_tools: status.quarantined.into_iter().map(Into::into).collect(),
            untyped_tools: status.untyped.into_iter().map(Into::into).collect(),
            hidden_tools: status.hidden,
            notes: status.notes,
        }
    }
}
