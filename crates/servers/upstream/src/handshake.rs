//! Handshake with a server: dialing, era detection, `initialize` and `server/discover`.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use client::{Framing, LinkError, SendMeta, ServerLink};
use json::{Span, elements, quote, text};
use model::{Capabilities, Coding, KindRef};
use tokio::time::timeout;
use wire::mcp::Era;
use wire::mcp::{Version, code, extensions};
use wire::rpc::{Message, MessageKind, notification};

use crate::declared::Handshake;
use crate::session::Session;
use crate::session::requests::{PendingAnswer, result};
use crate::{
    config::{ProtoConfig, StdioConfig, Transport},
    demo::DemoLink,
    fault::Fault,
    openapi,
    proto::ProtoLink,
    session::inbox::SessionInbox,
    session_api::QUESTIONS,
    startup::START_MAX,
};

/// Dials the server and completes the handshake in `era`; with `None` it detects the era first. The
/// supervisor bounds the time.
pub(crate) async fn open(session: &Arc<Session>, era: Option<Era>) -> Result<(), Fault> {
    let link = dial(session).await?;
    session.take_link(link);
    let transport = &session.setup.spec.config.transport;
    match era {
        Some(Era::Modern) => {
            let answer = session
                .ask(Era::Modern, "server/discover", &[], START_MAX)
                .await;
            session.set_handshake(discovered(&retried(session, answer).await?)?);
        }
        Some(Era::Legacy) => initialize(session, None).await?,
        None => match transport {
            Transport::Http(_) if session.setup.http_sse => initialize(session, None).await?,
            Transport::Sse(_) | Transport::Proto(_) => initialize(session, None).await?,
            Transport::Stdio(_) | Transport::OpenApi(_) | Transport::Demo => {
                probe(session, true).await?
            }
            Transport::Http(_) | Transport::Participant | Transport::Unusable { .. } => {
                probe(session, false).await?
            }
        },
    }
    Ok(())
}

/// Opens the link to the server.
async fn dial(session: &Arc<Session>) -> Result<ServerLink, Fault> {
    let setup = &session.setup;
    let inbox = Arc::new(SessionInbox(Arc::downgrade(session)));
    let key = session.callers_key()?;
    let key = key.as_ref().map(|key| key.as_str());
    Ok(match &setup.spec.config.transport {
        Transport::Stdio(child) => start(session, child, inbox, key)?,
        Transport::Proto(proto) => dial_proto(session, proto, inbox, key).await?,
        Transport::Http(http) if !setup.http_sse => ServerLink::http(&session.http(http)?, inbox)?,
        Transport::Http(http) | Transport::Sse(http) => {
            ServerLink::sse(&session.http(http)?, inbox).await?
        }
        Transport::OpenApi(api) => openapi::open(session, api, inbox).await?,
        Transport::Demo => ServerLink::custom(Arc::new(DemoLink(inbox))),
        Transport::Participant => match &setup.environment.dial_in {
            Some(dial_in) => dial_in.dial(inbox)?,
            None => return Err(LinkError::NotConnected.into()),
        },
        Transport::Unusable { why, .. } => return Err(Fault::Unusable(why.clone())),
    })
}

/// Opens the link to a server that is configured to speak proto-mcp. Its child may speak JSON-RPC
/// instead.
async fn dial_proto(
    session: &Arc<Session>,
    proto: &ProtoConfig,
    inbox: Arc<SessionInbox>,
    key: Option<&str>,
) -> Result<ServerLink, Fault> {
    let setup = &session.setup;
    if let ProtoConfig::Child { child, .. } = proto
        && session.coding() == Coding::Json
    {
        return start(session, child, inbox, key);
    }
    let (link, inbox) = ProtoLink::new(session);
    let queue_len_max = setup.spec.limits.queue_len_max;
    let frames = match proto {
        ProtoConfig::Child { child, .. } => {
            let guard = setup.environment.guard.clone();
            let log = Arc::clone(&setup.environment.stderr);
            let spec = setup.spec.stdio(child, Framing::Frames, key)?;
            ServerLink::stdio(&spec, inbox, guard, log)
                .map_err(|error| LinkError::Unreachable(not_started(child, &error)))?
        }
        ProtoConfig::Tcp(at) => {
            let socket = setup.spec.socket(at, key)?;
            ServerLink::framed(&socket, false, queue_len_max, inbox).await?
        }
        ProtoConfig::WebSocket(at) => {
            let socket = setup.spec.socket(at, key)?;
            ServerLink::framed(&socket, true, queue_len_max, inbox).await?
        }
        ProtoConfig::Grpc(at) => ServerLink::grpc(&setup.spec.http(at, key)?, inbox).await?,
    };
    Ok(link.over(frames))
}

/// Starts a child that speaks JSON-RPC.
fn start(
    session: &Session,
    child: &StdioConfig,
    inbox: Arc<SessionInbox>,
    key: Option<&str>,
) -> Result<ServerLink, Fault> {
    let setup = &session.setup;
    let guard = setup.environment.guard.clone();
    let log = Arc::clone(&setup.environment.stderr);
    let spec = setup.spec.stdio(child, Framing::Lines, key)?;
    let started = ServerLink::stdio(&spec, inbox, guard, log);
    Ok(started.map_err(|error| LinkError::Unreachable(not_started(child, &error)))?)
}

/// Why a child cannot be started. Names the program without its directory, and no arguments.
fn not_started(stdio: &StdioConfig, error: &std::io::Error) -> String {
    let is_absent = error.kind() == std::io::ErrorKind::NotFound;
    // The system says the same of an absent program and an absent directory.
    if is_absent && stdio.cwd.as_ref().is_some_and(|dir| !dir.is_dir()) {
        return format!("the working directory does not exist: {error}");
    }
    let what = if is_absent {
        "was not found"
    } else {
        "cannot be started"
    };
    let name = Path::new(&stdio.command)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    format!("the program `{}` {what}: {error}", name.escape_debug())
}

/// Probes a server for the modern era; after a short wait, or an error, initializes it as a legacy
/// server. A late success of the probe still counts: a server may take longer to start than the
/// probe waits.
async fn probe(session: &Arc<Session>, is_child: bool) -> Result<(), Fault> {
    let mut probe = session.request(Era::Modern, "server/discover", &[], Some(START_MAX))?;
    let Ok(answer) = timeout(session.setup.spec.limits.probe, probe.answer()).await else {
        tracing::debug!(
            server = session.upstream(),
            "no answer to the modern probe; trying the legacy handshake"
        );
        return initialize(session, Some(probe)).await;
    };
    let judged = match retried(session, answer).await {
        answer if is_child => judge(answer)?,
        Err(fault) if fault.says_nothing_of_era() => return Err(fault),
        answer => judge(answer).unwrap_or(None),
    };
    match judged {
        Some(handshake) => session.set_handshake(handshake),
        None => {
            // A legacy server may have opened an HTTP session for the probe.
            if let Some(link) = session.link.get() {
                link.forget_session();
            }
            initialize(session, None).await?;
        }
    }
    Ok(())
}

/// The second answer of a server that rejects the revision of its first request and names it in the
/// list of those that it supports; else the first answer.
async fn retried(session: &Arc<Session>, first: Result<Message, Fault>) -> Result<Message, Fault> {
    let names_another = match &first {
        Ok(answer) => rejects_version(answer) && modern_error(answer).is_some(),
        Err(_) => false,
    };
    if !names_another {
        return first;
    }
    let second = session
        .ask(Era::Modern, "server/discover", &[], START_MAX)
        .await;
    match second {
        Ok(second) if second.shape() == MessageKind::Result => Ok(second),
        _ => first,
    }
}

fn rejects_version(answer: &Message) -> bool {
    answer
        .error_object()
        .is_some_and(|error| error.code == code::UNSUPPORTED_VERSION)
}

/// Judges the answer to a probe: the handshake of a modern server, or `None` for a legacy one. The
/// end of the link is a fault.
fn judge(answer: Result<Message, Fault>) -> Result<Option<Handshake>, Fault> {
    match answer {
        Ok(message) if message.shape() == MessageKind::Result => Ok(discovered(&message).ok()),
        Ok(message) => Ok(modern_error(&message)),
        Err(fault @ Fault::Link(LinkError::Exited { .. } | LinkError::Closed)) => Err(fault),
        Err(_) => Ok(None),
    }
}

/// A server that uses the modern error codes is modern, even if it rejects the probe.
fn modern_error(message: &Message) -> Option<Handshake> {
    let error = message.error_object()?;
    let supported = match error.code {
        code::UNSUPPORTED_VERSION => versions(json::at(error.data?, &["supported"])?),
        code::HEADER_MISMATCH | code::MISSING_CAPABILITY => vec![Version::NEWEST],
        _ => return None,
    };
    modern(&supported, Bytes::from_static(b"{}"))
}

/// Reads the result of `server/discover`.
fn discovered(message: &Message) -> Result<Handshake, Fault> {
    let raw = result(message)?;
    let supported = json::at(&raw, &["supportedVersions"])
        .map(versions)
        .unwrap_or_default();
    modern(&supported, raw).ok_or_else(|| Fault::Answer("no modern revision in common".to_owned()))
}

/// The handshake of a server that supports these revisions, one modern one among them.
fn modern(supported: &[Version], result: Bytes) -> Option<Handshake> {
    let version = *supported
        .iter()
        .filter(|version| version.era() == Era::Modern)
        .max()?;
    let both = supported.iter().any(|version| version.era() == Era::Legacy);
    Some(Handshake::of(version, result, both))
}

fn versions(list: &[u8]) -> Vec<Version> {
    let spans = elements(list, Span::all(list)).unwrap_or_default();
    spans
        .iter()
        .filter_map(|span| Version::parse(&text(span.of(list))?))
        .collect()
}

/// The legacy handshake. A late success of a `probe` that is still pending wins over it.
pub(crate) async fn initialize(
    session: &Arc<Session>,
    probe: Option<PendingAnswer>,
) -> Result<(), Fault> {
    let client = session.setup.owner.as_ref().map(|owner| &owner.client);
    let version = match client {
        Some(client) => Version::answer_to(client.version.as_str()),
        None => Version::NEWEST_LEGACY,
    };
    let hello = Hello::of(session);
    let mut initialize = hello.send(session, version)?;
    let mut answer = match probe {
        None => initialize.answer().await?,
        Some(probe) => match first_to_succeed(session, initialize, probe).await? {
            First::Modern(handshake) => {
                session.set_handshake(handshake);
                return Ok(());
            }
            First::Legacy(answer) => *answer,
        },
    };
    // Versions of proto-mcp are not these.
    let older = if session.coding() == Coding::Json {
        older_revisions(&answer, version)
    } else {
        Vec::new()
    };
    for older in older {
        tracing::info!(
            server = session.upstream(),
            asked = older.as_str(),
            "the server refused the revision"
        );
        if let Some(link) = session.link.get() {
            link.forget_session();
        }
        answer = hello.send(session, older)?.answer().await?;
        if answer.shape() == MessageKind::Result {
            break;
        }
    }
    let raw = result(&answer).map_err(|fault| of_version(session, &answer, fault))?;
    let chosen = json::at(&raw, &["protocolVersion"]).and_then(text);
    let version = match chosen.as_deref().and_then(Version::parse) {
        Some(version) if version.era() == Era::Legacy => version,
        _ => return Err(Fault::Answer("no legacy revision in common".to_owned())),
    };
    session.set_handshake(Handshake::of(version, raw, false));
    if let Some(link) = session.link.get() {
        link.set_version(version.as_str());
        link.send(
            notification("notifications/initialized", None),
            SendMeta::default(),
        )?;
        // Servers may refuse requests that overtake it.
        link.flush().await;
        link.listen().await;
    }
    Ok(())
}

/// The client that a session shows a legacy server.
struct Hello {
    /// Its `ClientCapabilities`, raw.
    capabilities: Bytes,
    /// Its `Implementation`, raw.
    info: Bytes,
}

impl Hello {
    /// The owner of the session; the gateway itself in the shared one.
    fn of(session: &Session) -> Self {
        let setup = &session.setup;
        let client = setup.owner.as_ref().map(|owner| &owner.client);
        let capabilities = match client {
            Some(client) => permitted(&client.capabilities, &setup.spec.config.capabilities),
            None => Bytes::from(json::object(|able| {
                able.raw("extensions", &extensions::of_all_callers());
            })),
        };
        let info = client.and_then(|client| client.client_info.clone());
        Self {
            capabilities,
            info: info.unwrap_or_else(|| setup.environment.identity.clone()),
        }
    }

    /// Sends `initialize` with a revision.
    fn send(&self, session: &Session, version: Version) -> Result<PendingAnswer, Fault> {
        let params: [(&str, &[u8]); 3] = [
            ("protocolVersion", &quote(version.as_str()).into_bytes()),
            ("capabilities", &self.capabilities),
            ("clientInfo", &self.info),
        ];
        session.request(Era::Legacy, "initialize", &params, Some(START_MAX))
    }
}

/// Outcome of a probe and a handshake that are both pending.
enum First {
    /// The late success of the probe.
    Modern(Handshake),
    /// The answer to `initialize`.
    Legacy(Box<Message>),
}

/// Waits for a probe and `initialize`, whichever succeeds.
async fn first_to_succeed(
    session: &Arc<Session>,
    mut initialize: PendingAnswer,
    mut probe: PendingAnswer,
) -> Result<First, Fault> {
    let (answer, late) = tokio::select! {
        // If both are there, the probe counts.
        biased;
        late = probe.answer() => (None, late),
        answer = initialize.answer() => {
            let answer = answer?;
            if answer.shape() == MessageKind::Result {
                return Ok(First::Legacy(Box::new(answer)));
            }
            // A modern server answers both, `initialize` with an error.
            (Some(answer), probe.answer().await)
        }
    };
    if let Some(handshake) = judge(retried(session, late).await)? {
        return Ok(First::Modern(handshake));
    }
    match answer {
        Some(answer) => Ok(First::Legacy(Box::new(answer))),
        None => Ok(First::Legacy(Box::new(initialize.answer().await?))),
    }
}

/// The revisions to ask a server for that refused this one, the newest first: those that its error
/// names ("Lifecycle", "Version Negotiation"), or all older ones where it names none and its words
/// are about the version.
fn older_revisions(answer: &Message, refused: Version) -> Vec<Version> {
    let Some(error) = answer.error_object() else {
        return Vec::new();
    };
    let named = error
        .data
        .and_then(|data| json::at(data, &["supported"]))
        .map(versions);
    let words = error.message.to_lowercase();
    if named.is_none() && !words.contains("version") && !words.contains("revision") {
        return Vec::new();
    }
    let mut older: Vec<Version> = Version::ALL
        .iter()
        .copied()
        .filter(|version| *version < refused && version.era() == Era::Legacy)
        .collect();
    if let Some(named) = named {
        older.retain(|version| named.contains(version));
    }
    older.sort_unstable_by(|one, other| other.cmp(one));
    older
}

/// Why a server did not take the handshake: it may speak another version of proto-mcp.
fn of_version(session: &Session, answer: &Message, fault: Fault) -> Fault {
    let refused = answer
        .error_object()
        .is_some_and(|error| error.code == wire::proto::code::UNSUPPORTED_VERSION);
    match fault {
        Fault::Answer(why) if refused && session.coding() == Coding::Proto => Fault::Version(why),
        fault => fault,
    }
}

/// The caller's capabilities without the requests that the server may send to no caller: it learns
/// only what it may use. Each request that it then sends is judged by itself. The tasks of a legacy
/// server are no extension.
fn permitted(capabilities: &Bytes, server: &Capabilities) -> Bytes {
    let mut gone = Vec::new();
    for (capability, method) in QUESTIONS {
        let may_send =
            KindRef::request(method, None).is_ok_and(|kind| server.admits_somewhere(kind));
        if !may_send {
            gone.push((capability, None));
        }
    }
    let capabilities =
        extensions::without_tasks(capabilities).map_or(capabilities.clone(), Bytes::from);
    let permitted = json::edited(&capabilities, &gone);
    permitted.map_or(Bytes::from_static(b"{}"), Bytes::from)
}
