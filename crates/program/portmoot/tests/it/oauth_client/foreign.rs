//! The official Python SDK as the client of a participant without an account: a person opens what
//! it shows.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use harness::{deps, repository};
use serde_json::Value;

use super::{ANN, Site};

/// Runs the client in an era, connects the account that it asks for, and returns its last line.
fn run(site: &Site, era: &str) -> Value {
    let mut command = Command::new(deps().python());
    command.arg(repository().join("tests/third-party/url_consent.py"));
    command.args([
        &format!("{}/mcp", site.gateway.url()),
        ANN,
        "jira_whoami",
        "--era",
        era,
    ]);
    let mut client = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut last) = (client.stdin.take().unwrap(), Value::Null);
    for line in BufReader::new(client.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
    {
        last = serde_json::from_str(&line).unwrap();
        if let Some(url) = last["url"].as_str() {
            site.connect(url, ANN, "user-a");
            input.write_all(b"\n").unwrap();
        }
    }
    assert!(client.wait().unwrap().success(), "{last}");
    last
}

#[test]
fn the_python_sdk_opens_the_link_of_the_error_and_receives_its_end() {
    let said = run(&Site::start(), "legacy");
    assert_eq!(said["text"], "user-a with read", "{said}");
    assert_eq!(
        (said["asked"].as_array().unwrap().len(), &said["asked"]),
        (1, &said["completed"]),
        "{said}"
    );
}

#[test]
fn the_python_sdk_answers_the_question_and_comes_back() {
    let said = run(&Site::start(), "modern");
    assert_eq!(said["text"], "user-a with read", "{said}");
}
