//! Access tokens of a real identity provider (npm's `oidc-provider`), at every door.

mod bad_tokens;
mod canary;
mod documented;
mod doors;
mod every_door;
pub(crate) mod flood;
mod introspection;
mod later;
mod people;
mod probe;
pub(crate) mod provider;
mod rotation;
mod scopes;

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::support::{Gateway, fixture};
use provider::Provider;

/// The address under which clients outside reach the gateway of these tests, which they reach
/// otherwise.
const PUBLIC: &str = "https://mcp.example.com/gw";

/// The resource of an endpoint.
fn resource(endpoint: &str) -> String {
    format!("{PUBLIC}{endpoint}")
}

/// A gateway whose callers sign in at the provider: `ops` may do all in `main` and `ops`, machines
/// read tools `a_e*`.
fn config(provider: &Provider, more: &str) -> String {
    format!(
        "[server]\npublic_url = \"{PUBLIC}\"\n{more}\n[topics.main]\n[topics.ops]\naccess = \"private\"\n\
         [profiles.ops]\ncapabilities = [\"mcp/*\", \"chat\", \"portmoot/*\"]\n\
         [profiles.machines]\ncapabilities = [\"mcp/request:tools/call:a_e*\", \"portmoot/servers\"]\n\
         [issuers.corp]\nissuer = \"{}\"\n\
         [[issuers.corp.map]]\nwhen = {{ groups = \"ops\" }}\nprofile = \"ops\"\ntopics = [\"main\", \"ops\"]\n\
         [[issuers.corp.map]]\nwhen = {{ groups = \"machines\" }}\nprofile = \"machines\"\n{}",
        provider.issuer(),
        fixture("a", &[]),
    )
}

fn start(provider: &Provider, more: &str) -> (Home, Gateway) {
    let home = Home::new();
    let gateway = Gateway::start(&home, &config(provider, more));
    gateway.ready("a");
    (home, gateway)
}

/// The entries of the audit log about refused tokens, oldest first.
fn refused_sign_ins(home: &Home) -> Vec<Value> {
    let query = [
        "audit",
        "query",
        "portmoot/connection",
        "--json",
        "--verdict",
        "refused",
    ];
    let ran = home
        .run(&[&query[..], &["--config", "portmoot.toml"]].concat())
        .expect(0);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let entries = answer["entries"].as_array().unwrap().iter();
    entries
        .filter(|entry| entry["from"] == "system:nobody")
        .cloned()
        .collect()
}

/// `initialize` on a new connection.
fn initialize(gateway: &Gateway, path: &str, token: Option<&str>) -> Reply {
    post(gateway, path, token, &initialize_message())
}

fn initialize_message() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}})
}

fn post(gateway: &Gateway, path: &str, token: Option<&str>, message: &Value) -> Reply {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    headers.extend(
        bearer
            .iter()
            .map(|bearer| ("authorization", bearer.as_str())),
    );
    Connection::open(gateway.address()).exchange("POST", path, &headers, &message.to_string())
}

fn challenge(reply: &Reply) -> &str {
    reply.header("www-authenticate").unwrap_or_default()
}
