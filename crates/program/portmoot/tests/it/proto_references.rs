//! Schemas by reference in lists of tools: a client with Google's runtime resolves them at the
//! gateway's registry.

use std::fs;

use harness::{deps, proto_references};
use schema::Descriptors;
use serde_json::{Value, json};

use crate::front::binary;
use crate::home::Home;
use crate::proto_clients::websocket;
use crate::proto_servers;
use crate::registry::{resolve, resolver};
use crate::support::{Gateway, fixture, until};

const TOKEN: &str = "a-token-that-is-long-enough";
const OTHER: &str = "another-token-that-is-long-enough";

/// What a client sees that calls `tool`.
fn report(way: &[&str], tool: &str, arguments: &Value) -> Value {
    let arguments = arguments.to_string();
    proto_references(&[way, &["--tool", tool, "--arguments", &arguments]].concat())
}

/// Checks that the reference of `tool` was resolved to the schema by which its call was checked.
#[track_caller]
fn check(report: &Value, gateway: &Gateway, module: &str, tool: &str) -> String {
    assert_eq!(
        (&report["supports"], &report["unasked"]),
        (&json!(true), &json!(false)),
        "{report:#}"
    );
    let references = report["references"].as_object().unwrap();
    let reference = references[tool].as_str().unwrap();
    let (named, commit) = reference.rsplit_once(':').unwrap();
    let expected = format!("{}/portmoot/{module}.EchoRequest", gateway.address());
    assert_eq!(named, expected, "{report:#}");
    assert!(
        commit.len() == 32 && commit.bytes().all(|digit| digit.is_ascii_hexdigit()),
        "{reference}"
    );
    // A tool without members is a Struct, for which there is nothing to resolve.
    let inline = report["inline"].as_object().unwrap();
    assert!(
        !inline.is_empty() && inline.values().all(|files| *files == json!(0)),
        "{inline:?}"
    );
    // A reference is said once; where the schema is inline, beside it.
    assert_eq!(
        (&report["said"], &report["moved"]),
        (&json!(0), &json!(true)),
        "{report:#}"
    );
    assert_eq!(report["asked"], json!(references.len() + inline.len()));
    for selected in ["exact", "any", "label"] {
        assert_eq!(report[selected], json!([tool]), "{selected}");
    }
    assert_eq!(
        (&report["other"], &report["undeclared"]),
        (&json!([]), &json!(0))
    );
    assert_eq!(
        (&report["answer"], &report["same"]),
        (&json!(["grüße"]), &json!(true)),
        "{report:#}"
    );
    commit.to_owned()
}

#[test]
fn a_reference_of_a_list_resolves_to_the_schema_that_calls_are_checked_by() {
    let home = Home::new();
    let built_in = "[topics.main]\nbuiltin = [\"search_tools\"]\n".to_owned();
    let servers = [
        built_in,
        fixture("tools", &[]),
        fixture("My_tools", &["--page", "2"]),
    ]
    .concat();
    let gateway = Gateway::start(&home, &servers);
    let text = json!({ "text": "grüße" });
    let socket = websocket(&gateway);
    let by_socket = report(&["--ws", &socket], "tools_echo", &text);
    let commit = check(&by_socket, &gateway, "tools/tools.v1", "tools_echo");
    let by_tcp = report(&["--tcp", gateway.address()], "tools_echo", &text);
    assert_eq!(
        check(&by_tcp, &gateway, "tools/tools.v1", "tools_echo"),
        commit
    );
    let by_grpc = report(&["--grpc", gateway.address()], "tools_echo", &text);
    assert_eq!(
        check(&by_grpc, &gateway, "tools/tools.v1", "tools_echo"),
        commit
    );
    let (url, program, arguments) = (gateway.url(), binary(), text.to_string());
    let asked = ["--tool", "tools_echo", "--arguments", &arguments];
    let by_pipe =
        proto_references(&[&asked[..], &["--pipe", &program, "stdio", "--url", &url]].concat());
    assert_eq!(
        check(&by_pipe, &gateway, "tools/tools.v1", "tools_echo"),
        commit
    );
    // All tools of a server are in one commit, which is that of the label.
    let references = by_socket["references"].as_object().unwrap();
    let of_tools = references
        .values()
        .filter(|one| one.as_str().unwrap().contains("/tools/"));
    assert!(
        of_tools.clone().count() > 5
            && of_tools
                .clone()
                .all(|one| one.as_str().unwrap().ends_with(&commit))
    );
    // A name that `buf` does not allow is spelled so that it does, and the gateway's tools have a
    // module too.
    let of = |tool: &str| {
        references[tool]
            .as_str()
            .unwrap()
            .split_once("/portmoot/")
            .unwrap()
            .1
    };
    assert!(
        of("My_tools_echo").starts_with("my-tools/my_tools.v1.EchoRequest:"),
        "{references:?}"
    );
    assert!(
        of("search_tools").starts_with("portmoot/portmoot.v1.SearchToolsRequest:"),
        "{references:?}"
    );
}

#[test]
fn references_are_those_of_the_participants_own_lists() {
    let home = Home::new().env("ADMIN", TOKEN).env("SCOUT", OTHER);
    let people = "[participants.admin]\ntoken_env = \"ADMIN\"\ncapabilities = [\"mcp/*\"]\n\
        [participants.scout]\ntoken_env = \"SCOUT\"\ncapabilities = [\"mcp/request:tools/call:tools_echo\"]\n";
    let gateway = Gateway::start(&home, &[&fixture("tools", &[]), people].concat());
    let (socket, text) = (websocket(&gateway), json!({ "text": "grüße" }));
    let of = |token: &str| {
        let report = report(&["--ws", &socket, "--token", token], "tools_echo", &text);
        assert_eq!(
            (&report["answer"], &report["same"]),
            (&json!(["grüße"]), &json!(true)),
            "{report:#}"
        );
        report
    };
    let (all, own) = (of(TOKEN), of(OTHER));
    assert_eq!(own["references"].as_object().unwrap().len(), 1, "{own:#}");
    assert_ne!(
        own["references"]["tools_echo"],
        all["references"]["tools_echo"]
    );
    assert_eq!(own["files"], all["files"]);
}

#[test]
fn what_a_server_sent_is_referred_to_as_the_server_did_or_inline() {
    let gateway = Gateway::start(&Home::new(), &proto_servers::child("p", &[]));
    let report = report(&["--ws", &websocket(&gateway)], "p_find", &json!({}));
    let inline = report["inline"].as_object().unwrap();
    assert_eq!(
        (&inline["p_find"], &inline["p_ruled"]),
        (&json!(1), &json!(1)),
        "{report:#}"
    );
    let references = report["references"].as_object().unwrap();
    let of_server: Vec<_> = references
        .iter()
        .filter(|(tool, _)| tool.starts_with("p_"))
        .collect();
    // One that nothing here resolves is passed on as it came.
    let far = json!("buf.build/acme/tools/acme.tools.v1.FindRequest:v1");
    assert_eq!(of_server, [(&"p_distant".to_owned(), &far)]);
}

/// A server that lists one tool, with the schema in the file beside it.
const ONE_TOOL: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        info = {"name": "one", "version": "1"}
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif asked["method"] == "tools/list":
        tool = {"name": "find", "inputSchema": json.load(open("schema.json"))}
        answer["result"] = {"tools": [tool]}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"#;

#[test]
fn a_schema_that_grows_between_two_runs_keeps_its_numbers() {
    let home = Home::new();
    home.write("one.py", ONE_TOOL);
    let table = format!(
        "[servers.one]\ncommand = {:?}\nargs = [\"one.py\"]\n",
        deps().python()
    );
    let config = format!("[server]\nlisten = \"127.0.0.1:0\"\ndata_dir = \"data\"\n{table}");
    let numbers = |properties: &[&str]| {
        // In this order.
        let all: Vec<_> = properties
            .iter()
            .map(|name| format!(r#""{name}":{{"type":"string"}}"#))
            .collect();
        let schema = format!(r#"{{"type":"object","properties":{{{}}}}}"#, all.join(","));
        home.write("schema.json", &schema);
        let gateway = Gateway::start(&home, &config);
        gateway.ready("one");
        let host = gateway.address();
        let found = resolve(
            &resolver(&[&format!("http://{host}")], ""),
            &format!("{host}/portmoot/one/one.v1.FindRequest"),
        );
        let read = Descriptors::read(&found.unwrap().set).unwrap();
        let message = read.message("one.v1.FindRequest").unwrap();
        let number = |name: &&str| message.get_field_by_json_name(name).unwrap().number();
        let numbers: Vec<_> = properties.iter().map(number).collect();
        let last = properties.last().unwrap();
        until("the numbers are written", || {
            let written = fs::read_to_string(home.path().join("data/journal.jsonl")).ok()?;
            written.contains(&format!("{last:?}")).then_some(())
        });
        gateway.stop();
        numbers
    };
    assert_eq!(numbers(&["query", "limit"]), [1, 2]);
    // New ones come first in the schema, and one is gone.
    assert_eq!(numbers(&["after", "limit", "zone"]), [3, 2, 4]);
    assert_eq!(numbers(&["query", "zone"]), [1, 4]);
}
