//! People who sign in with the Python SDK: the whole loop from the first 401 to a call, in both eras.

use std::net::TcpListener;

use harness::signs_in;
use serde_json::{Value, json};

use super::provider::Provider;
use crate::home::Home;
use crate::support::Gateway;

const SCOPES: &str = "[scopes.\"mcp:read\"]\nbaseline = true\ncapabilities = [\"mcp/request:tools/call:a_echo\"]\n\
    [scopes.\"mcp:write\"]\nimplies = [\"mcp:read\"]\ncapabilities = [\"mcp/request:tools/call:*\"]\n";

/// A gateway that is reached under its own address, as the SDK insists, and its provider.
pub(super) fn start() -> (Home, Gateway, Provider) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let public = format!("http://127.0.0.1:{port}");
    let resources = ["/mcp", "/mcp/ops"].map(|endpoint| format!("{public}{endpoint}"));
    let provider = Provider::of(&resources, 600);
    let issuer = format!("issuer = \"{}\"\n", provider.issuer());
    let config = super::config(&provider, SCOPES)
        .replace(super::PUBLIC, &public)
        .replace(&issuer, &format!("{issuer}step_up = true\n"));
    let home = Home::new();
    home.write("portmoot.toml", &config);
    let listen = format!("127.0.0.1:{port}");
    let command = home.command(&["serve", "--listen", &listen, "--config", "portmoot.toml"]);
    let gateway = Gateway::serve(command);
    gateway.ready("a");
    (home, gateway, provider)
}

fn check(report: &Value, authorized: &[&str]) {
    let tools = report["tools"].as_array().unwrap();
    assert!(tools.len() > 3 && tools.contains(&json!("a_add")), "{report}");
    assert_eq!(report["calls"][0], "hello", "{report}");
    assert_eq!(report["authorized"].as_array().unwrap().len(), authorized.len(), "{report}");
    for (visit, scope) in report["authorized"].as_array().unwrap().iter().zip(authorized) {
        assert!(visit.as_str().unwrap().split(' ').any(|one| one == *scope), "{report}");
    }
}

#[test]
fn the_python_sdk_signs_in_lists_calls_and_steps_up() {
    let (_home, gateway, _provider) = start();
    for (path, era) in
        [("/mcp", "legacy"), ("/mcp", "modern"), ("/mcp/ops", "legacy"), ("/mcp/ops", "modern")]
    {
        let url = format!("{}{path}", gateway.url());
        let calls = ["--call", "a_echo", "{\"text\":\"hello\"}", "--call", "a_add", "{\"a\":1,\"b\":2}"];
        let report =
            signs_in(&[&[url.as_str(), "ann", "--era", era, "--client-id", "desk"], &calls[..]].concat());
        check(&report, &["mcp:read", "mcp:write"]);
        assert!(report["calls"][1].as_str().is_some_and(|text| text.contains('3')), "{era} {path}: {report}");
    }
}

#[test]
fn a_client_that_registers_itself_signs_in_with_the_baseline() {
    let (_home, gateway, _provider) = start();
    let url = format!("{}/mcp", gateway.url());
    let report = signs_in(&[url.as_str(), "ann", "--call", "a_echo", "{\"text\":\"hello\"}"]);
    check(&report, &["mcp:read"]);
}
