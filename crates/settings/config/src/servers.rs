//! Tables `[servers.NAME]`, read as [`ServerConfig`].

pub(crate) mod auth;
mod curation;
mod openapi;
mod proto;
pub(crate) mod sandbox;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use identity::is_gateways_name;
use topic::section::Sets;

use crate::expand::is_reference;
use crate::node::{Node, TreeEntry, Value};
use crate::problem::Problem;
use crate::reader::{DURATION, ListedText, Problems, Table, duration};
use crate::secrets::Outside;
use crate::tls_files;
use crate::values::{Env, Unread, Unset, Variables, capabilities, participant_id};
pub(crate) use auth::without_resource;
use model::{Capabilities, GATEWAY, IdError, ParticipantId};
use oauth::config::AuthConfig;
use sandbox::{SANDBOXES, Sandbox};
use sha2::{Digest as _, Sha256};
use tls::{ClientFiles, Oldest};
use upstream::config::{
    Confinement, EraChoice, FirstUse, HttpConfig, IDLE_STOP, PinMode, PinPolicy, ProtoConfig,
    SecretText, ServerConfig, SessionSharing, Start, StdioConfig, Timeouts, Transport,
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

const STARTS: [(&str, Start); 2] = [("demand", Start::Demand), ("always", Start::Always)];

const PINS: [(&str, PinMode); 3] = [
    ("off", PinMode::Off),
    ("warn", PinMode::Warn),
    ("block", PinMode::Block),
];
const FIRST: [(&str, FirstUse); 2] = [("trust", FirstUse::Trust), ("ask", FirstUse::Ask)];

#[derive(Clone, Copy)]
enum Type {
    Stdio,
    Http,
    Sse,
    Proto,
    Grpc,
    OpenApi,
    Demo,
}

const TYPES: [(&str, Type); 9] = [
    ("stdio", Type::Stdio),
    ("http", Type::Http),
    ("streamable-http", Type::Http),
    ("streamableHttp", Type::Http),
    ("sse", Type::Sse),
    ("proto", Type::Proto),
    ("grpc", Type::Grpc),
    ("openapi", Type::OpenApi),
    ("demo", Type::Demo),
];

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
    let mut transport = transport(&table, &variables, enabled);
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

/// The variables that all processes of servers get: `env_pass`.
fn env_pass(table: &Table<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for ListedText { text, location } in table.texts("env_pass").unwrap_or_default() {
        if text.is_empty() || text.contains(['=', '\0', '*', '$']) {
            let message = format!(
                "`{}`: `{}` is not the name of an environment variable",
                table.full("env_pass"),
                text.escape_debug()
            );
            let hint = "write names such as \"SSL_CERT_FILE\", without values and patterns";
            table.problems().note_value(location, message, hint);
        } else if !names.iter().any(|known| known == text) {
            names.push(text.to_owned());
        }
    }
    names
}

/// Gives a process the variables of the gateway's environment that are set, unless its own
/// configuration sets them.
fn pass(child: &mut StdioConfig, names: &[String], env: Env<'_>) {
    for name in names {
        if child.env.iter().any(|(known, _)| known == name) {
            continue;
        }
        if let Some(value) = env(name) {
            // As a reference it is shown: the value may be a secret.
            let value = SecretText::expanded(value, format!("${{{name}}}"));
            child.env.push((name.clone(), value));
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

/// The name of a server. MCP clients allow white space in names; ids have none, so it becomes `-`.
pub(crate) fn server_name(key: &str) -> String {
    let words: Vec<&str> = key.split_whitespace().collect();
    if words.is_empty() {
        key.to_owned()
    } else {
        words.join("-")
    }
}

/// The name under which a server of this name is in topics: its own, or another one where that
/// belongs to callers or the gateway (`local`, `anonymous-1`, `system`, and what looks like them).
#[must_use]
pub fn free_name(name: &str) -> String {
    let is_taken = is_gateways_name(name) || ParticipantId::new(name) == Err(IdError::Reserved);
    if is_taken && name != GATEWAY {
        format!("server-{name}")
    } else {
        name.to_owned()
    }
}

fn server_id(
    entry: &TreeEntry,
    problems: &Problems,
    notices: &mut Vec<String>,
) -> Option<ParticipantId> {
    let written = server_name(&entry.key);
    let name = free_name(&written);
    if name != written {
        notices.push(format!(
            "{}: the server `{written}` is called `{name}`: callers or the gateway have its own name",
            entry.location
        ));
    }
    if name == GATEWAY {
        let problem = Problem::new(
            "config_name",
            format!("a server cannot be called `{GATEWAY}`"),
        )
        .at(&entry.location);
        problems.note(problem.hint("the gateway uses that name itself: choose another"));
        return None;
    }
    participant_id(&name, &entry.location, problems)
}

/// The keys of a table that say what a server is and where, their texts expanded.
struct ServerKeys {
    command: Option<SecretText>,
    args: Vec<SecretText>,
    env: Vec<(String, SecretText)>,
    cwd: Option<PathBuf>,
    url: Option<SecretText>,
    headers: Vec<(String, SecretText)>,
    /// `openapi`: the file or URL of an API's description.
    description: Option<SecretText>,
    query: Vec<(String, SecretText)>,
    fallback: Option<bool>,
    tls: ClientFiles,
    /// Whether all variables in them are set. A text without its variables is not the one that
    /// counts, so its form is not checked.
    is_whole: bool,
}

impl ServerKeys {
    fn read(table: &Table<'_>, variables: &Variables<'_>, enabled: bool) -> Self {
        let command = variables.path_at(table, "command");
        let args = args(table, variables);
        let env = variables.secrets_at(table, "env");
        let cwd = variables
            .path_at(table, "cwd")
            .map(|cwd| PathBuf::from(cwd.expose()));
        let url = variables.secret_at(table, "url");
        let headers = variables.secrets_at(table, "headers");
        let description = variables.path_at(table, "openapi");
        let query = variables.secrets_at(table, "query");
        let fallback = table.flag("fallback");
        let tls = tls_files::client_files(table, variables);
        let is_whole = variables.unset().is_empty();
        Self {
            command,
            args,
            env,
            cwd,
            url,
            headers,
            description,
            query,
            fallback,
            // Files of a server that cannot start, or is disabled, may be missing too.
            tls: if enabled && is_whole {
                tls
            } else {
                ClientFiles::default()
            },
            is_whole,
        }
    }
}

/// How a server is reached; `None` after a problem.
fn transport(table: &Table<'_>, variables: &Variables<'_>, enabled: bool) -> Option<Transport> {
    let written = table.choice("type", &TYPES);
    let mut keys = ServerKeys::read(table, variables, enabled);
    let kind = match written {
        Some(kind) => kind,
        None => kind_by_keys(table, &keys)?,
    };
    check_fallback(table, kind, &keys);
    if !matches!(kind, Type::OpenApi) {
        note_keys_of_apis(table);
    }
    match kind {
        Type::Demo => Some(Transport::Demo),
        Type::OpenApi => http_api(table, keys, enabled),
        Type::Stdio => {
            let command = needed(table, "command", keys.command.take())?;
            Some(Transport::Stdio(child(table, &command, keys, variables)))
        }
        Type::Proto => match keys.command.take() {
            Some(_) if keys.url.is_some() => {
                note_command_and_url(table);
                None
            }
            Some(command) => {
                let fallback = keys.fallback.unwrap_or(true);
                let child = child(table, &command, keys, variables);
                Some(Transport::Proto(ProtoConfig::Child { child, fallback }))
            }
            None => {
                let is_whole = keys.is_whole;
                let at = proto_address(table, keys, "wss://")?;
                let has_good_headers = check_headers(table, &at.headers);
                let transport = proto::address(table, at, is_whole)?;
                has_good_headers.then_some(transport)
            }
        },
        Type::Grpc => {
            let is_whole = keys.is_whole;
            let at = proto_address(table, keys, "https://")?;
            let has_good_headers = check_headers(table, &at.headers);
            let transport = proto::grpc(table, at, is_whole)?;
            has_good_headers.then_some(transport)
        }
        Type::Http => Some(Transport::Http(http_address(table, keys)?)),
        Type::Sse => Some(Transport::Sse(http_address(table, keys)?)),
    }
}

/// The type of a server without a valid `type`, by the keys that it has.
fn kind_by_keys(table: &Table<'_>, keys: &ServerKeys) -> Option<Type> {
    match (&keys.command, &keys.url) {
        (None, _) if keys.description.is_some() => Some(Type::OpenApi),
        (Some(_), None) => Some(Type::Stdio),
        (None, Some(_)) => Some(Type::Http),
        (Some(_), Some(_)) => {
            note_command_and_url(table);
            None
        }
        (None, None) => {
            // A `type` that is not valid has been noted, and may need neither key.
            if table.get("type").is_none() {
                let message = format!("{} has neither `command` nor `url`", table.name());
                table.wrong(
                    "config_missing",
                    message,
                    "add a `command` to start, or a `url` to connect to",
                );
            }
            None
        }
    }
}

fn note_command_and_url(table: &Table<'_>) {
    let message = format!("{} has both `command` and `url`", table.name());
    table.wrong("config_twice", message, "keep one of them");
}

/// Checks that `fallback` is a key of a process that speaks proto-mcp: MCP over stdio is the only
/// other protocol that one could speak.
fn check_fallback(table: &Table<'_>, kind: Type, keys: &ServerKeys) {
    let may_fall_back = matches!(kind, Type::Proto) && keys.command.is_some();
    if keys.fallback.is_some() && !may_fall_back {
        let message = format!(
            "{} has no other protocol to fall back to",
            table.full("fallback")
        );
        table.note_value(
            "fallback",
            message,
            "it is for a server with `type = \"proto\"` and a `command`",
        );
    }
}

/// Notes the keys that are about HTTP APIs, of a server that is none.
fn note_keys_of_apis(table: &Table<'_>) {
    for key in ["openapi", "query"] {
        if table.get(key).is_some() {
            let message = format!("`{}` is for servers that are HTTP APIs", table.full(key));
            table.note_value(
                key,
                message,
                "a server has a `command`, a `url`, or `openapi` (with or without `url`)",
            );
        }
    }
}

/// The transport to an HTTP API with a description.
fn http_api(table: &Table<'_>, keys: ServerKeys, enabled: bool) -> Option<Transport> {
    let description = needed(table, "openapi", keys.description)?;
    let is_good_url = match &keys.url {
        Some(url) if keys.is_whole => check_url(table, url),
        _ => true,
    };
    let is_good = is_good_url && check_headers(table, &keys.headers);
    let first = keys.url.as_ref().unwrap_or(&description);
    let is_encrypted = !first.expose().starts_with("http://");
    let tls = tls_files::client(table, keys.tls, Oldest::Tls12, is_encrypted)?;
    if !is_good {
        return None;
    }
    let given = openapi::Given {
        url: keys.url,
        headers: keys.headers,
        query: keys.query,
        reads: enabled && keys.is_whole,
    };
    openapi::read(table, &description, given, tls)
}

/// The address of a proto-mcp server, which begins with `encrypted` if it is over TLS. Unlike
/// servers of MCP, which may be old, it has TLS 1.3.
fn proto_address(table: &Table<'_>, keys: ServerKeys, encrypted: &str) -> Option<HttpConfig> {
    let url = needed(table, "url", keys.url)?;
    let is_encrypted = url.expose().starts_with(encrypted);
    let tls = tls_files::client(table, keys.tls, Oldest::Tls13, is_encrypted)?;
    Some(HttpConfig {
        url,
        headers: keys.headers,
        tls,
    })
}

/// The address of a server of MCP over HTTP.
fn http_address(table: &Table<'_>, keys: ServerKeys) -> Option<HttpConfig> {
    let url = needed(table, "url", keys.url)?;
    let is_good = (!keys.is_whole || check_url(table, &url)) && check_headers(table, &keys.headers);
    let is_encrypted = !url.expose().starts_with("http://");
    let tls = tls_files::client(table, keys.tls, Oldest::Tls12, is_encrypted)?;
    is_good.then_some(HttpConfig {
        url,
        headers: keys.headers,
        tls,
    })
}

/// The process of a server.
fn child(
    table: &Table<'_>,
    command: &SecretText,
    keys: ServerKeys,
    variables: &Variables<'_>,
) -> StdioConfig {
    check_command(table, command, keys.cwd.as_deref(), variables.env());
    env_names(table, &keys.env);
    StdioConfig {
        command: command.expose().to_owned(),
        args: keys.args,
        env: keys.env,
        cwd: keys.cwd,
        confinement: Confinement::default(),
    }
}

/// The value of a key that servers of the type need. An empty text is none.
fn needed(table: &Table<'_>, key: &'static str, value: Option<SecretText>) -> Option<SecretText> {
    match value {
        Some(value) if !value.written().is_empty() => Some(value),
        _ => {
            let message = format!("{} needs a `{key}`", table.name());
            table.wrong("config_missing", message, "servers of this `type` need it");
            None
        }
    }
}

/// Checks that a command with blanks is a program, and not a program with arguments.
fn check_command(table: &Table<'_>, command: &SecretText, cwd: Option<&Path>, env: Env<'_>) {
    let mut words = command.written().split_whitespace();
    let (Some(program), Some(first)) = (words.next(), words.next()) else {
        return;
    };
    // A program may have blanks in its name: one that is there, or may be, is left alone. The
    // variables of a disabled server are empty, and lead to no program.
    let path = env("PATH").unwrap_or_default();
    let mut directories = std::env::split_paths(&path)
        .chain(cwd.map(Path::to_owned))
        .chain([PathBuf::new()]);
    let is_found = directories.any(|directory| directory.join(command.expose()).exists());
    if is_found || is_reference(command.written()) {
        return;
    }
    let args: Vec<&str> = std::iter::once(first).chain(words).collect();
    let message = format!(
        "`{}` is one program, and there is no program `{}`",
        table.full("command"),
        command.written().escape_debug()
    );
    table.note_value(
        "command",
        message,
        format!("if it has arguments, write command = {program:?} and args = {args:?}"),
    );
}

fn args(table: &Table<'_>, variables: &Variables<'_>) -> Vec<SecretText> {
    let mut args = Vec::new();
    for ListedText { text, location } in table.texts("args").unwrap_or_default() {
        args.push(variables.secret(text, table.full("args"), location, table.problems()));
    }
    args
}

fn env_names(table: &Table<'_>, variables: &[(String, SecretText)]) {
    for (name, value) in variables {
        if name.is_empty() || name.contains(['=', '\0']) || value.expose().contains('\0') {
            let message = format!(
                "`{}`: `{}` is not a valid environment variable",
                table.full("env"),
                name.escape_debug()
            );
            table.note_value(
                "env",
                message,
                "a name has no `=`, and names and values have no NUL",
            );
        }
    }
}

/// Checks the expanded URL. The message shows it unexpanded: its variables may be secrets.
fn check_url(table: &Table<'_>, url: &SecretText) -> bool {
    // A disabled server's variables are empty.
    if url.expose().is_empty() {
        return true;
    }
    let parsed: Result<hyper::Uri, _> = url.expose().parse();
    let good = parsed.is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
    });
    if !good {
        let message = format!(
            "`{}` is not an absolute http or https URL: `{}`",
            table.full("url"),
            url.written()
        );
        table.note_value("url", message, "for example \"http://127.0.0.1:9000/mcp\"");
    }
    good
}

fn check_headers(table: &Table<'_>, headers: &[(String, SecretText)]) -> bool {
    let wrong = headers.iter().find(|(name, value)| {
        hyper::header::HeaderName::from_bytes(name.as_bytes()).is_err()
            || hyper::header::HeaderValue::from_str(value.expose()).is_err()
    });
    if let Some((name, _)) = wrong {
        let message = format!(
            "`{}`: `{}` is not a valid header",
            table.full("headers"),
            name.escape_debug()
        );
        table.note_value(
            "headers",
            message,
            "a header has a name of letters, digits and `-`, and a value of one line",
        );
    }
    wrong.is_none()
}

/// The prefix of public names. Tool names have letters, digits, `_`, `-` and `.` only.
fn prefix(table: &Table<'_>, name: Option<&ParticipantId>) -> Arc<str> {
    match table.text("prefix") {
        Some(prefix) if prefix.chars().all(fits_prefix) => prefix.into(),
        Some(prefix) => {
            let message = format!(
                "`{}`: `{}` cannot be part of a tool name",
                table.full("prefix"),
                prefix.escape_debug()
            );
            table.note_value("prefix", message, "use letters, digits, `_`, `-` and `.`");
            prefix.into()
        }
        None => default_prefix(name.map(ParticipantId::as_str).unwrap_or_default()).into(),
    }
}

/// The prefix of a server without a configured one: its name with `_` for other characters. Where
/// these are letters of other scripts, which would all be `_`, what is left is followed by digits
/// that differ where names differ.
fn default_prefix(name: &str) -> String {
    let fitting: String = name
        .chars()
        .map(|c| if fits_prefix(c) { c } else { '_' })
        .collect();
    if name.is_ascii() {
        return fitting;
    }
    let mut left: String = fitting
        .split('_')
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("_");
    if left.is_empty() {
        left.push('s');
    }
    let digest = Sha256::digest(name.as_bytes());
    let digits: String = digest
        .iter()
        .take(3)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{left}_{digits}")
}

/// Whether a character may be part of a prefix.
fn fits_prefix(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.".contains(c)
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

/// Messages about arguments that begin with `~/`, which only a shell expands.
pub(crate) fn unexpanded(tree: &Node) -> Vec<String> {
    let mut found = Vec::new();
    for server in tree.get("servers").map(Node::entries).unwrap_or_default() {
        let Some(Value::List(items)) = server.node.get("args").map(|node| &node.value) else {
            continue;
        };
        for item in items {
            if let Some(text) = item.text()
                && text.starts_with("~/")
            {
                found.push(format!(
                    "{}: `servers.{}.args`: `~` in `{text}` is not expanded: write ${{HOME}}",
                    item.location, server.key
                ));
            }
        }
    }
    found
}
