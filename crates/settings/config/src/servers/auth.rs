//! Tables `[servers.NAME.auth]`: how the gateway authorizes its requests to a server.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use oauth::Secret;
use oauth::config::{AccountOwner, AuthConfig, AuthorizationKind, CallerList, Resource};
use oauth::dialer::{Subnet, parse_url};
use oauth::jwt::SigningKey;
use oauth::key::KeySource;
use platform::open_regular;
use upstream::config::{HttpConfig, Transport};

use crate::expand::expand_home;
use crate::node::{Node, Value};
use crate::reader::Table;
use crate::secrets::FORMS;
use crate::values::{Env, Variables, plain_path_at};

const KINDS: [(&str, AuthorizationKind); 5] = [
    ("oauth", AuthorizationKind::OAuth),
    ("none", AuthorizationKind::None),
    ("headers", AuthorizationKind::Headers),
    ("client_credentials", AuthorizationKind::ClientCredentials),
    ("exchange", AuthorizationKind::Exchange),
];
const ACCOUNTS: [(&str, AccountOwner); 2] = [
    ("shared", AccountOwner::Shared),
    ("caller", AccountOwner::Caller),
];
const LISTS: [(&str, CallerList); 2] = [("caller", CallerList::Caller), ("any", CallerList::Any)];
/// Parameters of an authorization request that the gateway itself sets.
const OWN_PARAMS: [&str; 9] = [
    "response_type",
    "client_id",
    "redirect_uri",
    "state",
    "code_challenge",
    "code_challenge_method",
    "scope",
    "resource",
    "request",
];
/// Bytes of a key file that are read.
const KEY_BYTES_MAX: u64 = 16 * 1024;

/// Reads the table of a server. Without one, a server over HTTP is signed in to once it asks for
/// it, unless its headers authorize the requests; an HTTP API says nowhere where, and gets its
/// headers alone.
pub(super) fn read(
    server: &Table<'_>,
    transport: Option<&Transport>,
    variables: &Variables<'_>,
) -> AuthConfig {
    let label = variables.key_label();
    if let Some(label) = &label
        && transport.is_none_or(Transport::has_callers_key)
    {
        return keyed(server, label);
    }
    let http = transport.and_then(http_of);
    let is_api = matches!(transport, Some(Transport::OpenApi(_)));
    let has_header = http.is_some_and(|http| {
        http.headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    });
    let standard = if has_header || http.is_none() || is_api {
        AuthorizationKind::Headers
    } else {
        AuthorizationKind::OAuth
    };
    let Some(table) = server.table("auth") else {
        return AuthConfig {
            kind: standard,
            ..AuthConfig::default()
        };
    };
    let kind = table
        .choice("kind", &KINDS)
        .unwrap_or(AuthorizationKind::OAuth);
    let account = table.choice("account", &ACCOUNTS).unwrap_or_default();
    let config = AuthConfig {
        kind,
        account: if kind == AuthorizationKind::Exchange {
            AccountOwner::Caller
        } else {
            account
        },
        list: table.choice("list", &LISTS).unwrap_or_default(),
        key_label: String::new(),
        issuer: url(&table, "issuer"),
        client_id: table.text("client_id").map(str::to_owned),
        client_secret: client_secret(&table, variables),
        private_key: private_key(&table, variables.env()),
        callback_port: callback_port(&table),
        client_metadata_url: url(&table, "client_metadata_url"),
        scopes: scopes(&table),
        authorize_params: params(&table, "authorize_params", &[]),
        resource: resource(&table),
        audience: table.text("audience").map(str::to_owned),
        allow_private: subnets(&table),
        legacy_discovery: table.flag("legacy_discovery").unwrap_or_default(),
    };
    // Without a transport, which is a problem of its own, it may be one over HTTP.
    let is_over_http = http.is_some() || transport.is_none();
    check_requests(&table, &config, is_over_http, has_header);
    check_client(&table, &config);
    table.finish();
    config
}

/// The address of a server over HTTP.
fn http_of(transport: &Transport) -> Option<&HttpConfig> {
    match transport {
        Transport::Http(http) | Transport::Sse(http) => Some(http),
        Transport::OpenApi(api) => Some(&api.http),
        Transport::Stdio(_)
        | Transport::Proto(_)
        | Transport::Demo
        | Transport::Participant
        | Transport::Unusable { .. } => None,
    }
}

/// A server to which each caller enters a key: of `auth` it has the keys `list`, and those that say
/// as much.
fn keyed(server: &Table<'_>, label: &str) -> AuthConfig {
    let key_label = label.to_owned();
    let keyed = AuthConfig {
        kind: AuthorizationKind::Key,
        account: AccountOwner::Caller,
        key_label,
        ..AuthConfig::default()
    };
    let Some(table) = server.table("auth") else {
        return keyed;
    };
    // A key is sent in a header, which `headers` says too.
    if table
        .choice("kind", &KINDS)
        .is_some_and(|kind| kind != AuthorizationKind::Headers)
    {
        note_keyed(&table, "kind", "other account");
    }
    if table.choice("account", &ACCOUNTS) == Some(AccountOwner::Shared) {
        note_keyed(&table, "account", "share of another one");
    }
    let list = table.choice("list", &LISTS).unwrap_or_default();
    table.finish();
    AuthConfig { list, ..keyed }
}

/// Notes a key that has no meaning beside callers' own keys.
fn note_keyed(table: &Table<'_>, key: &str, what: &str) {
    let message = format!(
        "{}: each caller enters a key for the server, and has no {what} there",
        table.name()
    );
    table.note_at(
        key,
        "config_auth",
        message,
        "remove it, or the `{ caller = ... }` in `env` or `headers`",
    );
}

/// Checks that requests to the server can have tokens, and have no other authorization.
fn check_requests(table: &Table<'_>, config: &AuthConfig, is_over_http: bool, has_header: bool) {
    let wants_tokens = !matches!(
        config.kind,
        AuthorizationKind::None | AuthorizationKind::Headers
    );
    if wants_tokens && !is_over_http {
        let message = format!("{}: only servers over HTTP have accounts", table.name());
        table.wrong(
            "config_auth",
            message,
            "remove the table: other servers get credentials by `env` or `headers`",
        );
    }
    if wants_tokens && has_header {
        let message = format!(
            "{}: the headers of the server have an `Authorization` already",
            table.name()
        );
        table.wrong(
            "config_auth",
            message,
            "remove one of them: `kind = \"headers\"` keeps the header",
        );
    }
}

/// Checks the credentials with which the gateway is a client of the authorization server.
fn check_client(table: &Table<'_>, config: &AuthConfig) {
    // A key alone may do: it signs for the client whose document the gateway serves itself.
    if config.client_secret.is_some()
        && config.client_id.is_none()
        && config.client_metadata_url.is_none()
    {
        let message = format!(
            "{} has a client's credentials and no `client_id`",
            table.name()
        );
        table.wrong(
            "config_auth",
            message,
            "add the id with which the client is registered",
        );
    }
    if config.client_secret.is_some() && config.issuer.is_none() {
        let message = format!("{}: a client's secret is for one issuer", table.name());
        table.wrong(
            "config_auth",
            message,
            "add `issuer`: the server could name another one that keeps the secret",
        );
    }
    let is_machine = matches!(
        config.kind,
        AuthorizationKind::ClientCredentials | AuthorizationKind::Exchange
    );
    if is_machine && config.client_id.is_none() {
        let message = format!("{} needs a `client_id`", table.name());
        table.wrong(
            "config_auth",
            message,
            "a client without a person is registered by hand",
        );
    }
    if config.kind == AuthorizationKind::Exchange && config.issuer.is_none() {
        let message = format!(
            "{}: callers' tokens are for one authorization server",
            table.name()
        );
        table.wrong(
            "config_auth",
            message,
            "add `issuer`: the server could name another one that keeps them",
        );
    }
    if config.kind == AuthorizationKind::ClientCredentials && config.account == AccountOwner::Caller
    {
        let message = format!(
            "{}: the gateway's own credentials are no account of a caller",
            table.name()
        );
        table.note_value(
            "account",
            message,
            "use `account = \"shared\"`, or `kind = \"oauth\"`",
        );
    }
}

/// Source of the key that a table names: `key_file` or `key_command`.
pub(crate) fn key(table: &Table<'_>, env: Env<'_>) -> Option<KeySource> {
    let file = plain_path_at(table, "key_file", env);
    let command = table.texts("key_command");
    if let (Some(_), Some(_)) = (&file, &command) {
        let message = format!("{} has both `key_file` and `key_command`", table.name());
        table.wrong("config_twice", message, "keep one of them");
    }
    if command.as_ref().is_some_and(Vec::is_empty) {
        let message = format!("`{}` needs a program", table.full("key_command"));
        table.note_value(
            "key_command",
            message,
            "for example [\"pass\", \"show\", \"portmoot\"]",
        );
    }
    if let Some(file) = file {
        return Some(KeySource::File(file));
    }
    let mut words: Vec<String> = command?.iter().map(|one| one.text.to_owned()).collect();
    // Its arguments are the program's: it may mean something else by `~`.
    let program = words.first_mut()?;
    if let Ok(full) = expand_home(program, env) {
        *program = full;
    }
    Some(KeySource::Command(words))
}

fn url(table: &Table<'_>, key: &'static str) -> Option<String> {
    let text = table.text(key)?;
    if let Err(error) = parse_url(text) {
        table.note_value(
            key,
            format!("`{}`: {error}", table.full(key)),
            "for example \"https://idp.example.com\"",
        );
    }
    Some(text.to_owned())
}

fn callback_port(table: &Table<'_>) -> Option<u16> {
    let port = table.count("callback_port")?;
    let port = u16::try_from(port).ok().filter(|port| *port > 0);
    if port.is_none() {
        let message = format!(
            "`{}` must be a port, 1 to 65535",
            table.full("callback_port")
        );
        table.note_value(
            "callback_port",
            message,
            "the one that the client is registered with",
        );
    }
    port
}

/// The secret of the gateway as a client of the authorization server.
fn client_secret(table: &Table<'_>, variables: &Variables<'_>) -> Option<Secret> {
    let variable = table.text("client_secret_env");
    if let Some(node) = table.get("client_secret") {
        if variable.is_some() {
            let message = format!(
                "{} has both `client_secret` and `client_secret_env`",
                table.name()
            );
            table.wrong("config_twice", message, "keep one of them");
        }
        let Value::Table(_) = node.value else {
            let message = format!(
                "`{}`: a secret must not be in the configuration file",
                table.full("client_secret")
            );
            table.note_at("client_secret", "config_token", message, FORMS);
            return None;
        };
        let named = variables.named(node, &table.full("client_secret"), table.problems())?;
        return Some(Secret::new(named.expose().to_owned()));
    }
    let name = variable?;
    match (variables.env())(name) {
        Some(value) => Some(Secret::new(value)),
        None => {
            let message = format!(
                "`{}`: the environment variable `{name}` is not set",
                table.full("client_secret_env")
            );
            table.note_value(
                "client_secret_env",
                message,
                "set it, or write the name of another variable",
            );
            None
        }
    }
}

fn private_key(table: &Table<'_>, env: Env<'_>) -> Option<Arc<SigningKey>> {
    let path = plain_path_at(table, "private_key_file", env)?;
    match read_key(&path) {
        Ok(key) => Some(Arc::new(key)),
        Err(why) => {
            let message = format!(
                "`{}`: {}: {why}",
                table.full("private_key_file"),
                path.display()
            );
            table.note_value(
                "private_key_file",
                message,
                "the gateway signs with it as the client",
            );
            None
        }
    }
}

fn read_key(path: &Path) -> Result<SigningKey, String> {
    let file =
        open_regular(OpenOptions::new().read(true), path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    file.take(KEY_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    SigningKey::from_pem(&text).map_err(|error| error.to_string())
}

/// Scopes are of printable characters, without quotes and backslashes (RFC 6749 section 3.3).
fn scopes(table: &Table<'_>) -> Vec<String> {
    let scopes = table.plain_texts("scopes");
    if let Some(wrong) = scopes.iter().find(|scope| !is_scope(scope)) {
        let message = format!(
            "`{}`: `{}` is no scope",
            table.full("scopes"),
            wrong.escape_debug()
        );
        table.note_value("scopes", message, "write each scope as a text of its own");
    }
    scopes
}

/// Whether a text can be a scope.
pub(crate) fn is_scope(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte))
}

/// Further parameters of an authorization request, under a key. The gateway sets these others, too.
pub(crate) fn params(
    table: &Table<'_>,
    key: &'static str,
    others: &[&str],
) -> Vec<(String, String)> {
    let mut params = Vec::new();
    for entry in table.entries(key) {
        let name = entry.key.as_str();
        if OWN_PARAMS.contains(&name) || others.contains(&name) {
            let message = format!("`{}`: the gateway sets `{name}` itself", table.full(key));
            let hint = "it is for other parameters, such as access_type";
            table.note_value(key, message, hint);
        }
        match entry.node.text() {
            Some(text) => params.push((name.to_owned(), text.to_owned())),
            None => {
                let message = format!("`{}.{name}` must be a text", table.full(key));
                table.note_value(key, message, "for example { access_type = \"offline\" }");
            }
        }
    }
    params
}

fn resource(table: &Table<'_>) -> Resource {
    match table.get("resource").map(|node| &node.value) {
        None | Some(Value::Flag(true)) => Resource::Own,
        Some(Value::Flag(false)) => Resource::Omitted,
        Some(Value::Text(uri)) => Resource::Uri(uri.clone()),
        Some(Value::Integer(_) | Value::Decimal(_) | Value::List(_) | Value::Table(_)) => {
            let message = format!("`{}` must be true, false or a URI", table.full("resource"));
            table.note_value(
                "resource",
                message,
                "true sends the server's own; false is for Entra ID alone",
            );
            Resource::Own
        }
    }
}

/// Messages about servers whose tokens are asked for without `resource`.
pub(crate) fn without_resource(tree: &Node) -> Vec<String> {
    let mut found = Vec::new();
    for server in tree.get("servers").map(Node::entries).unwrap_or_default() {
        let Some(node) = server
            .node
            .get("auth")
            .and_then(|auth| auth.get("resource"))
        else {
            continue;
        };
        if node.value == Value::Flag(false) {
            found.push(format!(
                "{}: `servers.{}.auth.resource`: tokens are asked for without naming the server, and may be good at other servers of \
                 the issuer too (RFC 8707): false is for an issuer that rejects the parameter",
                node.location, server.key
            ));
        }
    }
    found
}

/// The private networks in which the authorization server may be.
fn subnets(table: &Table<'_>) -> Vec<Subnet> {
    let mut subnets = Vec::new();
    for text in table.plain_texts("allow_private") {
        match text.parse::<Subnet>() {
            Ok(subnet) => subnets.push(subnet),
            Err(error) => {
                let message = format!("`{}`: {error}", table.full("allow_private"));
                table.note_value(
                    "allow_private",
                    message,
                    "a range of addresses, or one address",
                );
            }
        }
    }
    subnets
}
