//! Transport of a server: the keys of its process, its URL or its API's description, read as a
//! [`Transport`].

use std::path::{Path, PathBuf};

use tls::{ClientFiles, Oldest};
use upstream::config::{Confinement, HttpConfig, ProtoConfig, SecretText, StdioConfig, Transport};

use super::{openapi, proto};
use crate::expand::is_reference;
use crate::node::{Node, Value};
use crate::reader::{ListedText, Table};
use crate::tls_files;
use crate::values::{Env, Variables};

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

/// The variables that all processes of servers get: `env_pass`.
pub(super) fn env_pass(table: &Table<'_>) -> Vec<String> {
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
pub(super) fn pass(child: &mut StdioConfig, names: &[String], env: Env<'_>) {
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
pub(super) fn read(
    table: &Table<'_>,
    variables: &Variables<'_>,
    enabled: bool,
) -> Option<Transport> {
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
