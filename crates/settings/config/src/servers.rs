//! Tables `[servers.NAME]`, read as [`ServerConfig`].

pub(crate) mod auth;
mod curation;
pub(crate) mod name;
mod openapi;
mod proto;
pub(crate) mod sandbox;
pub(crate) mod transport;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use topic::section::Sets;

use crate::node::{TreeEntry, Value};
use crate::problem::Problem;
use crate::reader::{DURATION, Table, duration};
use crate::secrets::Outside;
use crate::values::{Unread, Unset, Variables, capabilities};
pub(crate) use auth::without_resource;
use model::{Capabilities, ParticipantId};
use name::{default_prefix, free_name, prefix, server_id, server_name};
use oauth::config::AuthConfig;
use sandbox::{SANDBOXES, Sandbox};
use transport::{env_pass, pass};
use upstream::config::{
    EraChoice, FirstUse, IDLE_STOP, PinMode, PinPolicy, Placement, ServerConfig, SessionSharing,
    Start, Timeouts, Transport,
};

const ERAS: [(&str, EraChoice); 3] = [
    ("auto", EraChoice::Auto),
    ("legacy", EraChoice::Legacy),
    ("modern", EraChoice::Modern),
];
const SESSIONS: [(&str, SessionSharing); 4] = [
    ("auto", SessionSharing::Auto),
    ("shared", SessionSharing::Shared),
    ("caller", SessionSharing::Caller),
    ("call", SessionSharing::Call),
];

const PLACEMENTS: [(&str, Placement); 3] = [
    ("auto", Placement::Auto),
    ("home", Placement::Home),
    ("every", Placement::Every),
];

const STARTS: [(&str, Start); 2] = [("demand", Start::Demand), ("always", Start::Always)];

const PINS: [(&str, PinMode); 3] = [
    ("off", PinMode::Off),
    ("warn", PinMode::Warn),
    ("block", PinMode::Block),
];
const FIRST: [(&str, FirstUse); 2] = [("trust", FirstUse::Trust), ("ask", FirstUse::Ask)];

/// Reads every server, in the order of the configuration. `notices` receives messages about those
/// that cannot start.
pub(crate) fn read(
    root: &Table<'_>,
    outside: &Outside<'_>,
    notices: &mut Vec<String>,
) -> (Vec<ServerConfig>, Vec<(ParticipantId, AuthConfig)>) {
    let standard = Standard::read(root);
    let mut servers = Vec::new();
    let mut accounts = Vec::new();
    for (entry, table) in root.tables("servers") {
        let problems = table.problems();
        let before = problems.count();
        let mut read = server(entry, table, &standard, outside, notices);
        // Its client's program may understand what the gateway does not: a server of such a file
        // stops none of the others.
        if entry.location.layer.is_of_client {
            let found = problems.take_from(before);
            if !found.is_empty() {
                read = unusable(entry, &found, notices);
            }
        }
        if let Some((server, auth)) = read {
            accounts.push((server.name.clone(), auth));
            servers.push(server);
        }
    }
    (servers, accounts)
}

/// A server of a client's file that the gateway cannot use as it is written: it is down and says
/// why, and the others run. `None` if it has no name that a server can have.
fn unusable(
    entry: &TreeEntry,
    found: &[Problem],
    notices: &mut Vec<String>,
) -> Option<(ServerConfig, AuthConfig)> {
    for Problem {
        message, location, ..
    } in found
    {
        let place = location.as_ref().unwrap_or(&entry.location);
        notices.push(format!(
            "{place}: {message}, so the server `{}` cannot start",
            entry.key
        ));
    }
    let Problem { message, hint, .. } = found.first()?.clone();
    let fix = hint.unwrap_or_else(|| "change its entry in the file".to_owned());
    let name = ParticipantId::new(&free_name(&server_name(&entry.key))).ok()?;
    let server = ServerConfig {
        prefix: default_prefix(name.as_str()).into(),
        name,
        transport: Transport::Unusable { why: message, fix },
        era: EraChoice::default(),
        sessions: SessionSharing::default(),
        placement: Placement::default(),
        timeouts: Timeouts::default(),
        capabilities: Arc::new(Capabilities::upstream()),
        enabled: true,
        validate: false,
        pins: PinPolicy::default(),
        start: Start::default(),
        idle_stop: IDLE_STOP,
        curation: None,
    };
    Some((
        server,
        AuthConfig {
            kind: oauth::config::AuthorizationKind::Headers,
            ..AuthConfig::default()
        },
    ))
}

/// Keys of `[server]` that are the defaults of every server.
#[derive(Debug)]
struct Standard {
    /// The variables of the gateway's environment that its processes get.
    env_pass: Vec<String>,
    sandbox: Sandbox,
    pins: PinPolicy,
    sessions: SessionSharing,
    start: Start,
    idle_stop: Duration,
}

impl Standard {
    /// Reads `[server]`, as far as it is about servers.
    fn read(root: &Table<'_>) -> Self {
        // Of a value that is no table, `settings::read` notes the problem.
        let is_table = root
            .get("server")
            .is_some_and(|node| matches!(node.value, Value::Table(_)));
        let table = if is_table { root.table("server") } else { None };
        let Some(table) = table else {
            return Self {
                env_pass: Vec::new(),
                sandbox: Sandbox::None,
                pins: PinPolicy::default(),
                sessions: SessionSharing::default(),
                start: Start::default(),
                idle_stop: IDLE_STOP,
            };
        };
        Self {
            sandbox: table.choice("sandbox", &SANDBOXES).unwrap_or(Sandbox::None),
            pins: pins(&table, PinPolicy::default()),
            sessions: table.choice("sessions", &SESSIONS).unwrap_or_default(),
            start: table.choice("start", &STARTS).unwrap_or_default(),
            idle_stop: table.duration("idle_stop").unwrap_or(IDLE_STOP),
            env_pass: env_pass(&table),
        }
    }
}

/// Reads one server; `None` if it has no name or no transport, which is noted.
fn server(
    entry: &TreeEntry,
    table: Table<'_>,
    standard: &Standard,
    outside: &Outside<'_>,
    notices: &mut Vec<String>,
) -> Option<(ServerConfig, AuthConfig)> {
    let enabled = table.flag("enabled").unwrap_or(true);
    let name = server_id(entry, table.problems(), notices);
    let variables = if enabled {
        Variables::of(outside)
    } else {
        Variables::of_disabled(&empty_variable)
    };
    let mut transport = transport::read(&table, &variables, enabled);
    // After a problem of the transport it may be one with a process: that problem is enough.
    let has_process = transport
        .as_ref()
        .is_none_or(|transport| transport.child().is_some());
    let confinement = sandbox::read(&table, &variables, standard.sandbox, has_process);
    if let Some(child) = transport.as_mut().and_then(Transport::child_mut) {
        child.confinement = confinement;
        if enabled {
            pass(child, &standard.env_pass, outside.env);
        }
    }
    let auth = auth::read(&table, transport.as_ref(), &variables);
    check_callers_key(&table, transport.as_ref(), &variables);
    // All texts have been expanded by now, so that nothing that is lacking is missed.
    let unset = variables.unset();
    let unread = variables.unread();
    note_lacking(entry, &unset, &unread, notices);
    let transport =
        transport.map(|usable| lacking(unset.first(), unread.first()).unwrap_or(usable));
    let prefix = prefix(&table, name.as_ref());
    let era = era(&table, transport.as_ref());
    // An API has no sessions, and so nothing that callers could not share.
    let usual_sessions = match (standard.sessions, &transport) {
        (SessionSharing::Auto, Some(Transport::OpenApi(_))) => SessionSharing::Shared,
        (usual, _) => usual,
    };
    let sessions = table
        .choice("sessions", &SESSIONS)
        .unwrap_or(usual_sessions);
    let placement = table.choice("placement", &PLACEMENTS).unwrap_or_default();
    let start = table.choice("start", &STARTS).unwrap_or(standard.start);
    let idle_stop = table.duration("idle_stop").unwrap_or(standard.idle_stop);
    if !has_process {
        note_keys_of_processes(&table, notices);
    }
    let timeouts = timeouts(&table);
    let capabilities =
        capabilities(&table, &Sets::new()).unwrap_or_else(|| Arc::new(Capabilities::upstream()));
    let validate = table.flag("validate").unwrap_or_default();
    let pins = pins(&table, standard.pins);
    let curation = curation::read(&table);
    table.finish();
    let server = ServerConfig {
        name: name?,
        transport: transport?,
        prefix,
        era,
        sessions,
        placement,
        timeouts,
        capabilities,
        enabled,
        validate,
        pins,
        start,
        idle_stop,
        curation,
    };
    Some((server, auth))
}

/// The environment of a disabled server: each variable is set and empty, so that none is missed.
fn empty_variable(_: &str) -> Option<String> {
    Some(String::new())
}

/// Checks that a key which each caller enters is where the server gets it.
fn check_callers_key(table: &Table<'_>, transport: Option<&Transport>, variables: &Variables<'_>) {
    let has_callers_key = transport.is_none_or(Transport::has_callers_key);
    if variables.key_label().is_some() && !has_callers_key {
        let message = format!(
            "{}: `caller` has no effect in `env` of a server with a `url`, nor in `headers` of one with a `command`",
            table.name()
        );
        table.wrong(
            "config_value",
            message,
            "a process gets the key by `env`, a server over HTTP by `headers`",
        );
    }
}

/// Notes every variable and secret that a server lacks and cannot start without.
fn note_lacking(entry: &TreeEntry, unset: &[Unset], unread: &[Unread], notices: &mut Vec<String>) {
    let server = &entry.key;
    for Unset {
        variable,
        key,
        location,
    } in unset
    {
        notices.push(format!(
            "{location}: `{key}`: the environment variable `{variable}` is not set, so the server `{server}` cannot start: \
             set it, or write a default: ${{{variable}:-...}}"
        ));
    }
    for Unread {
        key,
        no_secret,
        location,
    } in unread
    {
        let why = &no_secret.why;
        let fix = if no_secret.is_unset {
            format!(": {}", no_secret.fix)
        } else {
            String::new()
        };
        notices.push(format!(
            "{location}: the secret `{key}` cannot be read, so the server `{server}` cannot start: {why}{fix}"
        ));
    }
}

/// The era in which a server is spoken to: `era`, or `protocolEra` as files of clients spell it.
fn era(table: &Table<'_>, transport: Option<&Transport>) -> EraChoice {
    let own = table.choice("era", &ERAS);
    let of_clients = table.choice("protocolEra", &ERAS);
    if own.is_some() && of_clients.is_some() {
        let message = format!(
            "{}: `era` and `protocolEra` are the same setting",
            table.name()
        );
        table.wrong("config_twice", message, "keep one of them");
    }
    // A proto-mcp server has no modern era.
    if matches!(transport, Some(Transport::Proto(_))) {
        return EraChoice::Legacy;
    }
    own.or(of_clients).unwrap_or_default()
}

/// Notes the keys that are about a process, of a server that has none.
fn note_keys_of_processes(table: &Table<'_>, notices: &mut Vec<String>) {
    for key in ["start", "idle_stop"] {
        if table.get(key).is_some() {
            notices.push(format!(
                "{}: `{key}` has no effect: the server has no `command`",
                table.name()
            ));
        }
    }
}

/// The transport of a server that lacks a variable or a secret; `None` if it lacks none.
fn lacking(unset: Option<&Unset>, unread: Option<&Unread>) -> Option<Transport> {
    if let Some(Unset { variable, .. }) = unset {
        let why = format!("the environment variable `{variable}` is not set");
        let fix = format!("set {variable}, or write a default: ${{{variable}:-...}}");
        return Some(Transport::Unusable { why, fix });
    }
    let Unread { key, no_secret, .. } = unread?;
    let why = format!("the secret `{key}` cannot be read: {}", no_secret.why);
    let fix = no_secret.fix.clone();
    Some(Transport::Unusable { why, fix })
}

/// Policy on changes of a server's definitions.
fn pins(table: &Table<'_>, standard: PinPolicy) -> PinPolicy {
    let mode = table.choice("pins", &PINS).unwrap_or(standard.mode);
    let first = table.choice("pins_first", &FIRST).unwrap_or(standard.first);
    PinPolicy { mode, first }
}

/// Timeouts of a server, or of a participant that serves.
pub(crate) fn timeouts(table: &Table<'_>) -> Timeouts {
    let standard = Timeouts::default();
    let mut tools = BTreeMap::new();
    for entry in table.entries("tool_timeouts") {
        match entry.node.text().and_then(duration) {
            Some(time) => drop(tools.insert(entry.key.clone(), time)),
            None => {
                let message = format!(
                    "`{}.{}` must be {DURATION}",
                    table.full("tool_timeouts"),
                    entry.key
                );
                table
                    .problems()
                    .note(Problem::new("config_value", message).at(&entry.location));
            }
        }
    }
    let request = table
        .duration("request_timeout")
        .unwrap_or(standard.request);
    let longest = tools.values().copied().fold(request, Duration::max);
    let written_max = table.duration("max_timeout");
    if written_max.is_some_and(|max| max < longest) {
        let message = format!(
            "`{}` is shorter than another timeout",
            table.full("max_timeout")
        );
        table.note_value(
            "max_timeout",
            message,
            "`max_timeout` limits all other timeouts: raise it",
        );
    }
    let max = written_max.unwrap_or_else(|| standard.max.max(longest));
    Timeouts {
        start: table.duration("start_timeout").unwrap_or(standard.start),
        request,
        tools,
        max,
    }
}
