//! The official conformance suite through the gateway to a fixture that passes it alone: every required scenario, without
//! expected failures, under the fixture's own names.

use harness::{Running, conformance, conformance_but, conformance_client, conformance_of, shim_binary};

use crate::front::{Front, binary, over_http, over_stdio};

const LEGACY: (&str, usize) = ("2025-11-25", 30);
const MODERN: (&str, usize) = ("2026-07-28", 37);

/// Scenarios of the tasks extension, which no revision requires. The suite itself skips the one about notifications.
const TASKS: usize = 10;

/// The scenario of the modern suite that needs what a legacy server's questions do not have: keys of their own.
const NOT_OF_LEGACY: &[&str] = &["input-required-result-basic-elicitation"];

/// Scenarios of clients that are not run, by their beginning, with the reason.
const NOT_OF_CLIENTS: &[(&str, &str)] =
    &[("auth/", "The gateway has no OAuth towards servers yet (docs/mcp.md, \"Not implemented yet\").")];

/// The suite's servers behind the gateway, used by a client of each era: what the gateway sends as a client.
fn as_a_client(revision: &str, eras: [(&str, &str); 2], expected: &[&str]) {
    let but: Vec<&str> = NOT_OF_CLIENTS.iter().map(|(beginning, _why)| *beginning).collect();
    for (client, server) in eras {
        let command = format!("{} {} {client} {server}", shim_binary().display(), binary());
        let ran = conformance_client(&command, revision, &but);
        assert!(ran.iter().eq(expected), "{ran:?}");
    }
}

#[test]
fn as_a_client_of_legacy_servers() {
    as_a_client(
        "2025-11-25",
        [("legacy", "auto"), ("modern", "auto")],
        &["elicitation-sep1034-client-defaults", "initialize", "sse-retry", "tools_call"],
    );
}

#[test]
fn as_a_client_of_modern_servers() {
    as_a_client(
        "2026-07-28",
        // For its first legacy client, `auto` asks a modern server once whether it speaks legacy, with an `initialize`, which is no
        // request of this revision.
        [("modern", "auto"), ("legacy", "modern")],
        &[
            "http-custom-headers",
            "http-invalid-tool-headers",
            "http-standard-headers",
            "json-schema-ref-no-deref",
            "request-metadata",
            "sep-2322-client-request-state",
            "tools_call",
        ],
    );
}

fn passes(front: &Front, (revision, required): (&str, usize)) {
    assert_eq!(conformance(&front.url("/mcp"), revision).required, required);
}

#[test]
fn legacy() {
    let fixture = Running::fixture(&[]);
    passes(&Front::serve(&over_http(&fixture, "")), LEGACY);
}

#[test]
fn modern() {
    let fixture = Running::fixture(&[]);
    passes(&Front::serve(&over_http(&fixture, "")), MODERN);
}

#[test]
fn tasks_of_the_extension() {
    let fixture = Running::fixture(&[]);
    let front = Front::serve(&over_http(&fixture, ""));
    assert_eq!(conformance_of(&front.url("/mcp"), "tasks-"), TASKS);
}

#[test]
fn legacy_alone() {
    let fixture = Running::fixture(&["--era", "legacy"]);
    passes(&Front::serve(&over_http(&fixture, "")), LEGACY);
}

#[test]
fn modern_alone() {
    let fixture = Running::fixture(&["--era", "modern"]);
    passes(&Front::serve(&over_http(&fixture, "")), MODERN);
}

#[test]
fn over_a_pipe() {
    let front = Front::serve(&over_stdio("", &[]));
    passes(&front, LEGACY);
    passes(&front, MODERN);
}

#[test]
fn modern_clients_with_a_legacy_server() {
    let fixture = Running::fixture(&["--era", "legacy"]);
    let front = Front::serve(&over_http(&fixture, ""));
    let (revision, required) = MODERN;
    assert_eq!(
        conformance_but(&front.url("/mcp"), revision, NOT_OF_LEGACY).required,
        required - NOT_OF_LEGACY.len()
    );
}

#[test]
fn legacy_clients_with_a_modern_server() {
    let fixture = Running::fixture(&["--era", "modern"]);
    passes(&Front::serve(&over_http(&fixture, "")), LEGACY);
}
