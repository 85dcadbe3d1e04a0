//! Transcripts of `docs/authorization.md`, compared with what the command prints.

use std::process::Stdio;

use serde_json::json;

use super::PUBLIC;
use super::provider::Provider;
use crate::home::Home;

#[test]
fn the_page_shows_what_auth_check_prints() {
    let page =
        std::fs::read_to_string(harness::repository().join("docs/authorization.md")).unwrap();
    let (_, shown) = page
        .split_once("```\n$ portmoot auth check < token\n")
        .unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let provider = Provider::start(600);
    let home = Home::new();
    let public = "https://mcp.example.com";
    home.write(
        "portmoot.toml",
        &super::config(&provider, "").replace(PUBLIC, public),
    );
    let token = home.write(
        "token",
        &provider.forged(json!({}), json!({ "aud": public }), "a"),
    );
    let mut command = home.command(&["auth", "check", "--config", "portmoot.toml"]);
    let ran = command
        .stdin(std::fs::File::open(token).unwrap())
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let printed = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(
        (printed.as_str(), ran.status.code()),
        (shown, Some(4)),
        "{:?}",
        ran.stderr
    );
}
