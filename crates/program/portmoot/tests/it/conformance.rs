//! The official conformance suite through the gateway to a fixture that passes it alone: every
//! required scenario, without expected failures, under the fixture's own names.

use harness::{
    Running, conformance, conformance_but, conformance_client, conformance_client_extension,
    conformance_client_of, conformance_of, shim_binary,
};

use crate::front::{Front, binary, over_http, over_stdio};

pub(crate) const LEGACY: (&str, usize) = ("2025-11-25", 30);
pub(crate) const MODERN: (&str, usize) = ("2026-07-28", 37);

/// Scenarios of the tasks extension, which no revision requires. The suite itself skips the one
/// about notifications.
const TASKS: usize = 10;

/// The scenario of the modern suite that needs what a legacy server's questions do not have: keys
/// of their own.
const NOT_OF_LEGACY: &[&str] = &["input-required-result-basic-elicitation"];

/// The beginning of the scenarios about authorization, which have a client of their own: it signs
/// in.
const ACCOUNTS: &str = "auth/";

/// The required scenarios about authorization in each revision.
const LEGACY_ACCOUNTS: usize = 14;
const MODERN_ACCOUNTS: usize = 25;

/// The suite's servers that want a token, behind the gateway, which signs in as an operator has it
/// do.
fn signs_in(revision: &str, era: &str) -> usize {
    let command = format!(
        "{} {} {era} {era} accounts",
        shim_binary().display(),
        binary()
    );
    conformance_client_of(&command, revision, ACCOUNTS).len()
}

#[test]
fn as_a_client_that_signs_in_at_legacy_servers() {
    assert_eq!(signs_in("2025-11-25", "legacy"), LEGACY_ACCOUNTS);
}

#[test]
fn as_a_client_that_signs_in_at_modern_servers() {
    assert_eq!(signs_in("2026-07-28", "modern"), MODERN_ACCOUNTS);
}

#[test]
fn as_a_client_with_credentials_of_its_own() {
    let command = format!(
        "{} {} modern modern accounts",
        shim_binary().display(),
        binary()
    );
    for scenario in [
        "auth/client-credentials-basic",
        "auth/client-credentials-jwt",
    ] {
        conformance_client_extension(&command, "2026-07-28", scenario);
    }
}

/// The suite's servers behind the gateway, used by a client of each era: what the gateway sends as
/// a client.
fn as_a_client(revision: &str, eras: [(&str, &str); 2], expected: &[&str]) {
    for (client, server) in eras {
        let command = format!("{} {} {client} {server}", shim_binary().display(), binary());
        let ran = conformance_client(&command, revision, &[ACCOUNTS]);
        assert!(ran.iter().eq(expected), "{ran:?}");
    }
}

#[test]
fn as_a_client_of_legacy_servers() {
    as_a_client(
        "2025-11-25",
        [("legacy", "auto"), ("modern", "auto")],
        &[
            "elicitation-sep1034-client-defaults",
            "initialize",
            "sse-retry",
            "tools_call",
        ],
    );
}

#[test]
fn as_a_client_of_modern_servers() {
    as_a_client(
        "2026-07-28",
        // For its first legacy client, `auto` asks a modern server once whether it speaks legacy,
        // with an `initialize`, which is no request of this revision.
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
