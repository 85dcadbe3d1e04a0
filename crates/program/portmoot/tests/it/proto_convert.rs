//! `portmoot proto convert`: its files are read by the `buf` CLI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::home::Home;
use crate::support::{Gateway, fixture};

/// Real tool lists.
pub(crate) fn lists() -> Vec<PathBuf> {
    let folder = harness::repository().join("crates/protocol/schema/tests/tools");
    let mut lists: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    lists.sort();
    lists
}

#[track_caller]
fn buf(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new(harness::deps().buf());
    command
        .args(arguments)
        .current_dir(folder)
        .env("BUF_CACHE_DIR", folder.join("cache"));
    let run = command.output().unwrap();
    let talk =
        String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert!(
        run.status.success() && talk.is_empty(),
        "buf {arguments:?}: {talk}"
    );
}

fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), fs::read_to_string(path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn buf_accepts_the_files_of_397_real_tools() {
    let home = Home::new();
    let convert = |list: &Path| {
        let answer = home
            .run(&[
                "proto",
                "convert",
                list.to_str().unwrap(),
                "--out",
                "module",
                "--json",
            ])
            .expect(0);
        let answer: Value = serde_json::from_str(&answer.stdout).unwrap();
        answer["tools"].as_array().unwrap().len()
    };
    assert_eq!(lists().iter().map(|list| convert(list)).sum::<usize>(), 397);
    let module = home.path().join("module");
    buf(&module, &["build"]);
    buf(&module, &["lint"]);
    buf(&module, &["format", "--diff", "--exit-code", "proto"]);
    let before = files(&module.join("proto"));
    assert_eq!(before.len(), 397);
    for again in ["everything.json", "memory.json"] {
        convert(&lists()[0].with_file_name(again));
    }
    assert_eq!(files(&module.join("proto")), before, "the numbers stay");
}

#[test]
fn every_form_of_a_tool_is_read() {
    let schema = r#"{"type":"object","properties":{"query":{"type":"string"},"max_results":{"type":"integer","minimum":1}},"required":["query"]}"#;
    let tool = format!(r#"{{"name":"web_search","inputSchema":{schema}}}"#);
    let sample = "message WebSearchRequest {\n  string query = 1;\n  optional int32 max_results = 2 [(buf.validate.field).int32.gte = 1];\n}\n";
    let home = Home::new();
    for text in [
        schema.to_owned(),
        tool.clone(),
        format!("[{tool}]"),
        format!(r#"{{"tools":[{tool}]}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tool}]}}}}"#),
    ] {
        fs::write(home.path().join("web_search.json"), &text).unwrap();
        let shown = home
            .run(&["proto", "convert", "web_search.json", "--style", "spec"])
            .expect(0)
            .stdout;
        assert_eq!(shown, sample, "{text}");
    }
    let none = r#"{"name":"a","inputSchema":{"type":"string"}}"#;
    for (text, exit) in [
        ("{}", 2),
        ("[1]", 2),
        ("{", 2),
        (none, 2),
        (r#"{"type":["string"]}"#, 2),
    ] {
        fs::write(home.path().join("web_search.json"), text).unwrap();
        home.run(&["proto", "convert", "web_search.json"])
            .expect(exit);
    }
    home.run(&["proto", "convert", "absent.json"]).expect(1);
    fs::write(home.path().join("web_search.json"), schema).unwrap();
    for package in ["", "A.v1", "a..b", "a-b"] {
        home.run(&["proto", "convert", "web_search.json", "--package", package])
            .expect(2);
    }
}

#[test]
fn files_of_tools_that_are_gone_are_named_and_left() {
    let home = Home::new();
    let convert = |tools: &[&str]| {
        let schema = r#"{"type":"object","properties":{"q":{"type":"string"}}}"#;
        let tools: Vec<_> = tools
            .iter()
            .map(|name| format!(r#"{{"name":"{name}","inputSchema":{schema}}}"#))
            .collect();
        fs::write(
            home.path().join("some.json"),
            format!("[{}]", tools.join(",")),
        )
        .unwrap();
        let text = home
            .run(&["proto", "convert", "some.json", "--out", "module"])
            .expect(0);
        let json = home
            .run(&["proto", "convert", "some.json", "--out", "module", "--json"])
            .expect(0)
            .stdout;
        (
            text.stderr,
            serde_json::from_str::<Value>(&json).unwrap()["left"].clone(),
        )
    };
    let (said, left) = convert(&["find", "gone"]);
    assert!(
        !said.contains("left as they were") && left == Value::Array(Vec::new()),
        "{said} {left}"
    );
    let (said, left) = convert(&["find"]);
    assert!(
        said.contains("left as they were") && said.contains("some/v1/gone.proto"),
        "{said}"
    );
    assert_eq!(left, serde_json::json!(["some/v1/gone.proto"]));
    // What is there is still a module.
    assert!(home.path().join("module/proto/some/v1/gone.proto").exists());
    buf(&home.path().join("module"), &["build"]);
    fs::remove_file(home.path().join("module/proto/some/v1/gone.proto")).unwrap();
    assert_eq!(convert(&["find"]).1, Value::Array(Vec::new()));
}

#[test]
fn a_server_behind_the_gateway_is_converted() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("tools", &[]));
    gateway.ready("tools");
    let url = gateway.url();
    let shown = home
        .run(&["proto", "convert", "tools", "--url", &url])
        .expect(0)
        .stdout;
    assert!(
        shown.contains("message ToolsEchoRequest {\n  optional string text = 1"),
        "{shown}"
    );
    let missing = home
        .run(&["proto", "convert", "nothing", "--url", &url])
        .expect(5)
        .stderr;
    assert!(missing.contains("no server `nothing`"), "{missing}");
}
