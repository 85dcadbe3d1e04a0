//! The official Python and Rust SDKs as clients, in both eras, over every transport. The server is
//! the fixture on the Rust SDK.

use harness::{Running, Target, check_plain, check_tour, python_client, rust_tour};

use crate::front::{Front, binary, over_http, over_stdio, pipe};
use crate::home::Home;

const PREFIX: &str = "fixture_";

fn python(era: &str, prefix: &str, way: &[&str]) -> serde_json::Value {
    python_client(&[&["--era", era, "--prefix", prefix], way].concat())
}

#[test]
fn python_over_http() {
    for (server, prefix) in [("", ""), ("fixture", PREFIX)] {
        let fixture = Running::fixture(&[]);
        let front = Front::serve(&over_http(&fixture, server));
        check_tour(
            &python("legacy", prefix, &[&front.url("/mcp")]),
            false,
            prefix,
        );
        check_tour(
            &python("modern", prefix, &[&front.url("/mcp")]),
            true,
            prefix,
        );
    }
}

#[test]
fn python_over_http_sse_of_2024() {
    let fixture = Running::fixture(&[]);
    let front = Front::serve(&over_http(&fixture, ""));
    check_tour(
        &python("legacy", "", &[&front.url("/sse"), "--sse"]),
        false,
        "",
    );
}

#[test]
fn python_over_a_pipe() {
    for (era, server, prefix) in [
        ("legacy", "", ""),
        ("modern", "", ""),
        ("legacy", "fixture", PREFIX),
        ("modern", "fixture", PREFIX),
    ] {
        let home = Home::new();
        let words = pipe(&home, &over_stdio(server, &["--page", "2"]));
        let mut way = vec!["--stdio", "--"];
        way.extend(words.iter().map(String::as_str));
        check_tour(&python(era, prefix, &way), era == "modern", prefix);
    }
}

#[test]
fn python_over_a_pipe_to_a_running_gateway() {
    let fixture = Running::fixture(&[]);
    for (server, prefix) in [("", ""), ("fixture", PREFIX)] {
        let front = Front::serve(&over_http(&fixture, server));
        for era in ["legacy", "modern"] {
            let way = ["--stdio", "--", &binary(), "stdio", "--url", &front.url("")];
            check_tour(&python(era, prefix, &way), era == "modern", prefix);
        }
    }
}

#[test]
fn rust_over_http() {
    let fixture = Running::fixture(&[]);
    for (server, prefix) in [("", ""), ("fixture", PREFIX)] {
        let front = Front::serve(&over_http(&fixture, server));
        for modern in [false, true] {
            rust_tour(&Target::Http(front.url("/mcp"), None), modern, prefix);
        }
    }
}

#[test]
fn rust_over_a_pipe() {
    for modern in [false, true] {
        let home = Home::new();
        rust_tour(
            &Target::Stdio(pipe(&home, &over_stdio("fixture", &[]))),
            modern,
            PREFIX,
        );
    }
}

#[test]
fn both_sdks_call_a_server_of_the_other_era() {
    for (client, server) in [("legacy", "modern"), ("modern", "legacy")] {
        let modern = client == "modern";
        let fixture = Running::fixture(&["--era", server]);
        for config in [over_http(&fixture, ""), over_stdio("", &["--era", server])] {
            let front = Front::serve(&config);
            let url = front.url("/mcp");
            check_plain(&python(client, "", &[&url, "--tour", "plain"]), modern, "");
        }
    }
}
