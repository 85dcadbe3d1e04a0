//! Other people's servers and clients, from public registries, with one gateway.

use std::collections::BTreeSet;

use harness::{deps, python_client, repository};
use serde_json::{Value, json};

use crate::front::Front;

fn client_file(folder: &std::path::Path) -> String {
    let server = |words: Vec<String>| json!({ "command": words[0], "args": words[1..] });
    let servers = json!({
        "everything": server(deps().server_everything("stdio")),
        "filesystem": server(deps().server_filesystem(folder)),
        "time": server(deps().server_time()),
    });
    json!({ "mcpServers": servers }).to_string()
}

fn names(report: &Value, list: &str) -> BTreeSet<String> {
    let all: Vec<String> = serde_json::from_value(report[list].clone()).unwrap();
    let set: BTreeSet<String> = all.iter().cloned().collect();
    assert_eq!(
        set.len(),
        all.len(),
        "{list} lists something twice: {all:?}"
    );
    set
}

#[track_caller]
fn said(report: &Value, tool: &str, words: &str) {
    let text = report["calls"][tool]["text"]
        .as_str()
        .unwrap_or("not called");
    assert!(text.contains(words), "{tool} said `{text}`");
}

/// Checks that do not depend on the client's era.
fn check(report: &Value) {
    let tools = names(report, "tools");
    for tool in [
        "everything_echo",
        "filesystem_read_text_file",
        "filesystem_write_file",
        "time_get_current_time",
    ] {
        assert!(tools.contains(tool), "`{tool}` is not among {tools:?}");
    }
    assert!(names(report, "prompts").contains("everything_args-prompt"));
    assert!(names(report, "resources").contains("demo://resource/static/document/features.md"));
    assert!(names(report, "templates").contains("demo://resource/dynamic/text/{resourceId}"));

    said(report, "everything_get-sum", "The sum of 2 and 3 is 5.");
    said(
        report,
        "everything_trigger-long-running-operation",
        "completed",
    );
    said(report, "time_convert_time", "Nowhere/Land");
    assert_eq!(report["calls"]["time_convert_time"]["error"], true);
    assert!(
        report["calls"]["everything_get-structured-content"]["structured"]["temperature"]
            .is_number()
    );
    assert_eq!(
        report["calls"]["everything_get-tiny-image"]["types"],
        json!(["text", "image", "text"])
    );
    assert_eq!(
        report["progress"],
        json!([[1.0, 2.0, null], [2.0, 2.0, null]])
    );

    assert_eq!(report["document"], "# Everything Server ");
    assert_eq!(report["templated"], "Resource 3");
    assert_eq!(report["prompt"], "What's weather in Bern?");
    assert_eq!(report["departments"], json!(["Sales", "Support"]));
    assert_eq!(report["people"], json!(["Alice"]));
    assert_eq!(report["ids"], json!(["12"]));
}

#[test]
fn three_servers_behind_one_endpoint() {
    let (mine, roots) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let front = Front::serve_client_file(&client_file(mine.path()));
    let root = format!("file://{}", roots.path().display());
    let walk = |era| {
        python_client(&[
            &front.url("/mcp"),
            "--era",
            era,
            "--tour",
            "real",
            "--roots",
            &root,
        ])
    };

    let legacy = walk("legacy");
    check(&legacy);
    // The file server was started for this client: it requested the client's roots and uses them.
    said(
        &legacy,
        "filesystem_list_allowed_directories",
        &roots.path().display().to_string(),
    );
    said(
        &legacy,
        "everything_trigger-sampling-request",
        "answer to: ",
    );
    said(
        &legacy,
        "everything_trigger-elicitation-request",
        "User provided the requested information",
    );
    said(&legacy, "everything_get-roots-list", &root);
    said(&legacy, "everything_echo", "still here");
    assert_eq!(legacy["cancelled"], true);
    assert!(!legacy["log"].as_array().unwrap().is_empty());
    let changed: Vec<&str> = legacy["changed"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        changed.contains(&"notifications/resources/updated"),
        "{changed:?}"
    );

    let modern = walk("modern");
    check(&modern);
    said(
        &modern,
        "filesystem_list_allowed_directories",
        &mine.path().display().to_string(),
    );
}

#[test]
#[ignore = "installs 14 clients (1 GB); by hand: cargo nextest run -p portmoot --run-ignored only foreign"]
fn foreign_clients_list_and_call() {
    let server = deps().server_everything("stdio");
    let front = Front::serve_client_file(
        &json!({ "mcpServers": { "everything": { "command": server[0], "args": server[1..] } } })
            .to_string(),
    );
    let run = repository().join("tests/third-party/foreign/run");
    let ran = std::process::Command::new(run)
        .arg(front.url("/mcp"))
        .output()
        .unwrap();
    let table = String::from_utf8(ran.stdout).unwrap();
    println!("{table}");
    assert!(
        ran.status.success(),
        "{table}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}
