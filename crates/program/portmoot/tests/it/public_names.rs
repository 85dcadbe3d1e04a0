//! Public names: a prefix is not doubled, and no server takes another's names.

use crate::home::Home;
use crate::listed_server::ListedServer;
use crate::support::{Client, Gateway, until};

#[test]
fn a_prefix_is_shown_once() {
    let home = Home::new().env("CI", "a-token-that-is-long-enough");
    let git = ListedServer::new(
        &home,
        "git",
        &[
            ("git_status", "is git_status"),
            ("log", "is log"),
            ("change", "x"),
        ],
    );
    let bare = ListedServer::new(
        &home,
        "bare",
        &[
            ("git_status", "of bare"),
            ("git_log", "of bare"),
            ("own", "is own"),
        ],
    );
    let ci = "[participants.ci]\ntoken_env = \"CI\"\ncapabilities = [\"mcp/request:tools/*\"]\n";
    let config = format!("{}prefix = \"\"\n{}{ci}", bare.table(), git.table());
    let gateway = Gateway::start(&home, &config);
    ["git", "bare"].iter().for_each(|name| gateway.ready(name));
    let token = "a-token-that-is-long-enough";
    let client = Client::of(&gateway, token);
    let mut names = until("all tools", || {
        let has = |names: &[String], name: &str| names.iter().any(|one| one == name);
        Some(client.names("tools")).filter(|names| has(names, "own") && has(names, "git_log"))
    });
    names.sort();
    assert_eq!(names, ["git_change", "git_log", "git_status", "own"]);
    let listed = |pattern: &str| {
        home.run(&[
            "tools",
            "ls",
            pattern,
            "--url",
            &gateway.url(),
            "--token",
            token,
        ])
        .expect(0)
        .stdout
    };
    let shown = listed("*");
    assert!(
        shown.contains("is git_status")
            && !shown.contains("git_git_")
            && !shown.contains("of bare"),
        "{shown}"
    );
    client.call("git_status", serde_json::json!({}));
    client.call("git_log", serde_json::json!({}));
    assert_eq!(
        (git.calls(), bare.calls()),
        ("git_status\nlog\n".into(), String::new())
    );
    // Two tools of the server that are the same in public: the one that has the prefix itself,
    // whatever the order.
    git.list(&[
        ("status", "is status"),
        ("git_status", "is git_status"),
        ("change", "x"),
    ]);
    client.call("git_change", serde_json::json!({}));
    let log = gateway.receive("not offered to callers server=\"git\" list=Tools name=\"status\"");
    assert!(
        log.contains("another entry of the server has the same public name"),
        "{log}"
    );
    client.call("git_status", serde_json::json!({}));
    assert_eq!(git.calls(), "git_status\nlog\ngit_status\n");
    assert!(listed("git_status").contains("is git_status"));
}
