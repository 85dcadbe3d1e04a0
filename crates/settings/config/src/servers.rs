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

use access::config::Sets;
use access::is_gateways_name;

use crate::expand::is_reference;
use crate::node::{Node, TreeEntry, Value};
use crate::problem::Problem;
use crate::reader::{DURATION, Problems, Table, duration};
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
    Secret, ServerConfig, Sessions, Start, StdioConfig, Timeouts, Transport,
};

const ERAS: [(&str, EraChoice); 3] = [
    ("auto", EraChoice::Auto),
    ("legacy", EraChoice::Legacy),
    ("modern", EraChoice::Modern),
];
const SESSIONS: [(&str, Sessions); 4] = [
    ("auto", Sessions::Auto),
    ("shared", Sessions::Shared),
    ("caller", Sessions::Caller),
    ("call", Sessions::Call),
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
    let tables = root.tables("servers");
    let mut one = |(entry, table): (&TreeEntry, Table<'_>)| {
        let problems = table.problems();
        let before = table.problems().count();
        let server = server(entry, table, &standard, (outside, notices));
        if !entry.location.layer.is_of_client {
            return server;
        }
        match problems.take_from(before) {
            found if found.is_empty() => server,
            found => unusable(entry, &found, notices),
        }
    };
    let servers = tables.into_iter().filter_map(&mut one);
    servers
        .map(|(server, auth)| (server.clone(), (server.name, auth)))
        .unzip()
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
        sessions: Sessions::default(),
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
            kind: oauth::config::Kind::Headers,
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
    sessions: Sessions,
    start: Start,
    idle_stop: Duration,
}

impl Standard {
    fn read(root: &Table<'_>) -> Self {
        let is_table = |node: &&Node| matches!(node.value, Value::Table(_));
        let table = root
            .get("server")
            .filter(is_table)
            .and_then(|_| root.table("server"));
        let sandbox = table
            .as_ref()
            .and_then(|table| table.choice("sandbox", &SANDBOXES));
        let pins = table
            .as_ref()
            .map(|table| pins(table, PinPolicy::default()))
            .unwrap_or_default();
        let sessions = table
            .as_ref()
            .and_then(|table| table.choice("sessions", &SESSIONS));
        let start = table
            .as_ref()
            .and_then(|table| table.choice("start", &STARTS));
        let idle_stop = table.as_ref().and_then(|table| table.duration("idle_stop"));
        let env_pass = table.as_ref().map(env_pass).unwrap_or_default();
        Self {
            env_pass,
            sandbox: sandbox.unwrap_or(Sandbox::None),
            pins,
            sessions: sessions.unwrap_or_default(),
            start: start.unwrap_or_default(),
            idle_stop: idle_stop.unwrap_or(IDLE_STOP),
        }
    }
}

fn server(
    entry: &TreeEntry,
    table: Table<'_>,
    standard: &Standard,
    (outside, notices): (&Outside<'_>, &mut Vec<String>),
) -> Option<(ServerConfig, AuthConfig)> {
    let enabled = table.flag("enabled").unwrap_or(true);
    // A disabled server needs no variables and no secrets.
    let written = |_: &str| Some(String::new());
    let name = server_id(entry, table.problems(), notices);
    let variables = if enabled {
        Variables::of(outside)
    } else {
        Variables::of_disabled(&written)
    };
    let mut transport = transport(&table, &variables, enabled);
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
    let has_callers_key = transport.as_ref().is_none_or(Transport::has_callers_key);
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
    let unset = variables.unset();
    let unread = variables.unread();
    for Unset {
        variable,
        key,
        location,
    } in &unset
    {
        notices.push(format!(
            "{location}: `{key}`: the environment variable `{variable}` is not set, so the server `{}` cannot start: \
             set it, or write a default: ${{{variable}:-...}}",
            entry.key
        ));
    }
    for Unread {
        key,
        no_secret,
        location,
    } in &unread
    {
        let server = &entry.key;
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
    let transport =
        transport.map(|usable| lacking(unset.first(), unread.first()).unwrap_or(usable));
    let prefix = prefix(&table, name.as_ref());
    let era = table.choice("era", &ERAS);
    let other_era = table.choice("protocolEra", &ERAS);
    if let (Some(_), Some(_)) = (era, other_era) {
        let message = format!(
            "{}: `era` and `protocolEra` are the same setting",
            table.name()
        );
        table.wrong("config_twice", message, "keep one of them");
    }
    let era = era.or(other_era).unwrap_or_default();
    // A proto-mcp server has no modern era.
    let era = if matches!(transport, Some(Transport::Proto(_))) {
        EraChoice::Legacy
    } else {
        era
    };
    // An API has no sessions, and so nothing that callers could not share.
    let usual = match (standard.sessions, &transport) {
        (Sessions::Auto, Some(Transport::OpenApi(_))) => Sessions::Shared,
        (usual, _) => usual,
    };
    let sessions = table.choice("sessions", &SESSIONS).unwrap_or(usual);
    let start = table.choice("start", &STARTS).unwrap_or(standard.start);
    let idle_stop = table.duration("idle_stop").unwrap_or(standard.idle_stop);
    if !has_process {
        for key in ["start", "idle_stop"]
            .into_iter()
            .filter(|key| table.get(key).is_some())
        {
            notices.push(format!(
                "{}: `{key}` has no effect: the server has no `command`",
                table.name()
            ));
        }
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

/// The variables that all processes of servers get: `env_pass`.
fn env_pass(table: &Table<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for (name, location) in table.texts("env_pass").unwrap_or_default() {
        if name.is_empty() || name.contains(['=', '\0', '*', '$']) {
            let message = format!(
                "`{}`: `{}` is not the name of an environment variable",
                table.full("env_pass"),
                name.escape_debug()
            );
            let hint = "write names such as \"SSL_CERT_FILE\", without values and patterns";
            table.problems().note(
                Problem::new("config_value", message)
                    .hint(hint)
                    .at(location),
            );
        } else if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
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
        let value = env(name).map(|value| Secret::expanded(value, format!("${{{name}}}")));
        child.env.extend(value.map(|value| (name.clone(), value)));
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

fn transport(table: &Table<'_>, variables: &Variables<'_>, enabled: bool) -> Option<Transport> {
    let kind = table.choice("type", &TYPES);
    let command = variables.path_at(table, "command");
    let args = args(table, variables);
    let child_env = variables.secrets_at(table, "env");
    let cwd = variables
        .path_at(table, "cwd")
        .map(|cwd| PathBuf::from(cwd.expose()));
    let url = variables.secret_at(table, "url");
    let headers = variables.secrets_at(table, "headers");
    let description = variables.path_at(table, "openapi");
    let query = variables.secrets_at(table, "query");
    let fallback = table.flag("fallback");
    let tls_files = tls_files::client_files(table, variables);
    // Where a variable is not set, the text is not the one that counts.
    let is_whole = variables.unset().is_empty();
    // Files of a server that cannot start, or is disabled, may be missing too.
    let tls_files = if enabled && is_whole {
        tls_files
    } else {
        ClientFiles::default()
    };
    let typed_wrongly = kind.is_none() && table.get("type").is_some();
    let kind = match (kind, &command, &url) {
        (Some(kind), _, _) => kind,
        (None, None, _) if description.is_some() => Type::OpenApi,
        (None, Some(_), None) => Type::Stdio,
        (None, None, Some(_)) => Type::Http,
        (None, None, None) if typed_wrongly => return None,
        (None, None, None) => {
            let message = format!("{} has neither `command` nor `url`", table.name());
            table.wrong(
                "config_missing",
                message,
                "add a `command` to start, or a `url` to connect to",
            );
            return None;
        }
        (None, Some(_), Some(_)) => {
            let message = format!("{} has both `command` and `url`", table.name());
            table.wrong("config_twice", message, "keep one of them");
            return None;
        }
    };
    if fallback.is_some() && !(matches!(kind, Type::Proto) && command.is_some()) {
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
    if !matches!(kind, Type::OpenApi) {
        for key in ["openapi", "query"]
            .into_iter()
            .filter(|key| table.get(key).is_some())
        {
            let message = format!("`{}` is for servers that are HTTP APIs", table.full(key));
            table.note_value(
                key,
                message,
                "a server has a `command`, a `url`, or `openapi` (with or without `url`)",
            );
        }
    }
    match kind {
        Type::Demo => Some(Transport::Demo),
        Type::OpenApi => {
            let description = needed(table, "openapi", description)?;
            let is_good = |url: &Secret| !is_whole || check_url(table, url);
            let good = url.as_ref().is_none_or(is_good) && check_headers(table, &headers);
            let first = url.as_ref().unwrap_or(&description);
            let is_encrypted = !first.expose().starts_with("http://");
            let tls = tls_files::client(table, tls_files, Oldest::Tls12, is_encrypted)?;
            let given = openapi::Given {
                url,
                headers,
                query,
                reads: enabled && is_whole,
            };
            good.then(|| openapi::read(table, &description, given, tls))
                .flatten()
        }
        Type::Stdio => {
            let command = needed(table, "command", command)?;
            Some(Transport::Stdio(child(
                table,
                &command,
                (args, child_env, cwd),
                variables,
            )))
        }
        Type::Proto => match (command, url) {
            (Some(command), None) => {
                let child = child(table, &command, (args, child_env, cwd), variables);
                Some(Transport::Proto(ProtoConfig::Child {
                    child,
                    fallback: fallback.unwrap_or(true),
                }))
            }
            (None, url) => {
                let url = needed(table, "url", url)?;
                let is_encrypted = url.expose().starts_with("wss://");
                let tls = tls_files::client(table, tls_files, Oldest::Tls13, is_encrypted)?;
                let good = check_headers(table, &headers);
                proto::address(table, HttpConfig { url, headers, tls }, is_whole).filter(|_| good)
            }
            (Some(_), Some(_)) => {
                let message = format!("{} has both `command` and `url`", table.name());
                table.wrong("config_twice", message, "keep one of them");
                None
            }
        },
        Type::Grpc => {
            let url = needed(table, "url", url)?;
            let is_encrypted = url.expose().starts_with("https://");
            let tls = tls_files::client(table, tls_files, Oldest::Tls13, is_encrypted)?;
            let good = check_headers(table, &headers);
            proto::grpc(table, HttpConfig { url, headers, tls }, is_whole).filter(|_| good)
        }
        Type::Http | Type::Sse => {
            let url = needed(table, "url", url)?;
            let good = (!is_whole || check_url(table, &url)) && check_headers(table, &headers);
            let is_encrypted = !url.expose().starts_with("http://");
            let tls = tls_files::client(table, tls_files, Oldest::Tls12, is_encrypted)?;
            let http = HttpConfig { url, headers, tls };
            good.then_some(if matches!(kind, Type::Sse) {
                Transport::Sse(http)
            } else {
                Transport::Http(http)
            })
        }
    }
}

/// The child process of this command.
fn child(
    table: &Table<'_>,
    command: &Secret,
    (args, env, cwd): (Vec<Secret>, Vec<(String, Secret)>, Option<PathBuf>),
    variables: &Variables<'_>,
) -> StdioConfig {
    check_command(table, command, cwd.as_deref(), variables.env());
    env_names(table, &env);
    StdioConfig {
        command: command.expose().to_owned(),
        args,
        env,
        cwd,
        confinement: Confinement::default(),
    }
}

fn needed(table: &Table<'_>, key: &'static str, value: Option<Secret>) -> Option<Secret> {
    let value = value.filter(|value| !value.written().is_empty());
    if value.is_none() {
        let message = format!("{} needs a `{key}`", table.name());
        table.wrong("config_missing", message, "servers of this `type` need it");
    }
    value
}

/// Checks that a command with blanks is a program, and not a program with arguments.
fn check_command(table: &Table<'_>, command: &Secret, cwd: Option<&Path>, env: Env<'_>) {
    let mut words = command.written().split_whitespace();
    let (Some(program), Some(first)) = (words.next(), words.next()) else {
        return;
    };
    let path = env("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path)
        .chain(cwd.map(Path::to_owned))
        .chain([PathBuf::new()]);
    let is_found = dirs
        .map(|dir| dir.join(command.expose()))
        .any(|file| file.exists());
    // The variables of a disabled server are empty.
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

fn args(table: &Table<'_>, variables: &Variables<'_>) -> Vec<Secret> {
    let texts = table.texts("args").unwrap_or_default();
    let one =
        |(text, location)| variables.secret(text, table.full("args"), location, table.problems());
    texts.into_iter().map(one).collect()
}

fn env_names(table: &Table<'_>, variables: &[(String, Secret)]) {
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
fn check_url(table: &Table<'_>, url: &Secret) -> bool {
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

fn check_headers(table: &Table<'_>, headers: &[(String, Secret)]) -> bool {
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
        for (item, text) in items.iter().filter_map(|item| Some((item, item.text()?))) {
            if text.starts_with("~/") {
                found.push(format!(
                    "{}: `servers.{}.args`: `~` in `{text}` is not expanded: write ${{HOME}}",
                    item.location, server.key
                ));
            }
        }
    }
    found
}
