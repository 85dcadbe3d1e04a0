//! The Inspector's connection command line as the client of a participant without an account, in
//! both eras.

use std::process::{Command, Output};

use harness::deps;
use serde_json::{Value, json};

use super::{ANN, Site, text};

/// Connections that a daemon of this test holds between commands.
struct Inspector {
    home: tempfile::TempDir,
}

impl Inspector {
    /// With a connection to the gateway that declares this kind of questions.
    fn connected(site: &Site, era: &str, questions: &str) -> Inspector {
        let inspector = Inspector {
            home: tempfile::tempdir().unwrap(),
        };
        let (url, bearer) = (
            format!("{}/mcp", site.gateway.url()),
            format!("Authorization: Bearer {ANN}"),
        );
        let target = ["connect", &url, "--transport", "http", "--header", &bearer];
        inspector.run(&[&target[..], &["--era", era, "--elicit", questions]].concat());
        inspector
    }

    fn spawn(&self, args: &[&str]) -> Output {
        let home = self.home.path();
        let mut command = Command::new(deps().node());
        command
            .arg(deps().npm(".bin/mcpdo"))
            .args(["--format", "json"])
            .args(args);
        command
            .env("HOME", home)
            .env("MCP_INSPECTOR_SECRET_STORE", "file");
        command.env("MCP_ALLOW_DEFAULT_CONNECTION", "1");
        command
            .env("MCP_INSPECTOR_DAEMON_DIR", home.join("daemon"))
            .env("MCP_INSPECTOR_DAEMON_TOKEN", "of-this-test");
        command.output().unwrap()
    }

    /// Runs one command and returns what it prints.
    #[track_caller]
    fn run(&self, args: &[&str]) -> Value {
        let ran = self.spawn(args);
        assert!(ran.status.success(), "{args:?}: {ran:?}");
        serde_json::from_slice(&ran.stdout)
            .unwrap_or_else(|error| panic!("{args:?}: {error}: {ran:?}"))
    }
}

impl Drop for Inspector {
    fn drop(&mut self) {
        self.spawn(&["daemon", "stop"]);
    }
}

/// Calls the tool that stands in the list until there is an account, connects one at the URL that
/// is shown, says so, and calls a tool that this account has.
fn opened(era: &str, origin: &str) {
    let site = Site::start();
    let inspector = Inspector::connected(&site, era, "url");
    let asked = inspector.run(&["tools/call", "jira_authorize"]);
    let asked = &asked["elicitationPending"];
    assert_eq!(
        (&asked["mode"], &asked["origin"]),
        (&json!("url"), &json!(origin)),
        "{asked}"
    );
    let (id, url) = (
        asked["elicitationId"].as_str().unwrap(),
        asked["url"].as_str().unwrap(),
    );
    site.connect(url, ANN, "user-a");
    let answer = inspector.run(&["elicitation/respond", id, "--done"]);
    assert_eq!(
        text(&answer),
        "Your account at jira is connected already: list its tools."
    );
    // Of this account alone.
    let answer = inspector.run(&["tools/call", "jira_only_user-a"]);
    assert_eq!(text(&answer), "mine");
}

#[test]
fn the_inspector_opens_the_link_of_the_error_and_calls_again() {
    opened("legacy", "server-request");
}

#[test]
fn the_inspector_answers_the_question_and_comes_back() {
    opened("modern", "input-required");
}

#[test]
fn the_inspector_without_questions_reads_the_sentence_with_the_link() {
    let site = Site::start();
    for era in ["legacy", "modern"] {
        let ran = Inspector::connected(&site, era, "off").spawn(&["tools/call", "jira_authorize"]);
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(
            said.contains(&format!(
                "jira needs your permission. Open {}/connect/",
                site.gateway.url()
            )),
            "{ran:?}"
        );
    }
}
