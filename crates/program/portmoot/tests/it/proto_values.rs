//! Values of 397 real tools: JSON to messages, through Google's runtime, and back.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use harness::proto_client;
use schema::{FieldNumbering, ListedTool, Module, ToolSchema, UnsaidParts, package_of};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::home::Home;
use crate::proto_clients::websocket;
use crate::proto_convert::lists;
use crate::support::Gateway;

#[derive(serde::Deserialize)]
struct List {
    tools: Vec<Listed>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: String,
    input_schema: Box<RawValue>,
    output_schema: Option<Box<RawValue>>,
}

/// The tools of a server, and their messages.
fn module(name: &str, list: &List) -> Module {
    fn borrowed(tool: &Listed) -> ListedTool<'_> {
        let output = tool
            .output_schema
            .as_ref()
            .map(|output| output.get().as_bytes());
        ListedTool {
            name: &tool.name,
            description: None,
            input: tool.input_schema.get().as_bytes(),
            output,
        }
    }
    let tools: Vec<_> = list.tools.iter().map(borrowed).collect();
    Module::new(&package_of(name), &tools, &FieldNumbering::default())
}

/// What Python is shown of a module.
fn shown(list: &List, module: &Module) -> Value {
    let tool = |listed: &Listed| {
        let schema = module.tool(&listed.name).unwrap();
        let way =
            |schema: &RawValue, message: &str| json!({ "schema": schema, "message": message });
        let result = listed.output_schema.as_ref().map(|output| {
            way(
                output,
                schema.output().map_or("", |output| output.full_name()),
            )
        });
        json!({ "name": listed.name, "arguments": way(&listed.input_schema, schema.input().full_name()), "result": result })
    };
    let tools: Vec<_> = list.tools.iter().map(tool).collect();
    json!({ "set": hex(&module.descriptors().full_set()), "tools": tools })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

/// Writes JSON as a message, or reads a message as JSON.
fn answer(schema: &ToolSchema, question: &Value) -> Value {
    let text = |key: &str| question[key].as_str().unwrap();
    if let Some(json) = question["write"].as_str().map(str::as_bytes) {
        let typed = match text("way") {
            "arguments" => schema.arguments_from_json(json),
            "result" => schema.result_from_json(json),
            _ => schema::struct_from_json(json),
        };
        return match typed {
            Ok(typed) => {
                let UnsaidParts { empty, null: nulls } = typed.marks();
                json!({ "url": typed.type_url(), "bytes": hex(&typed.bytes()), "empty": empty, "null": nulls })
            }
            Err(why) => json!({ "refused": why.to_string() }),
        };
    }
    let marks = |key: &str| UnsaidParts::pointers(&question[key].to_string());
    let (marks, message) = (
        UnsaidParts {
            empty: marks("empty"),
            null: marks("null"),
        },
        bytes(text("read")),
    );
    let typed = match text("way") {
        "arguments" => schema.arguments_from_message(text("url"), &message, marks),
        _ => schema.result_from_message(text("url"), &message, marks),
    };
    json!({ "json": String::from_utf8(schema.json(&typed.unwrap()).unwrap()).unwrap() })
}

#[test]
fn values_of_397_real_tools_survive_googles_runtime() {
    let read = |path: &std::path::PathBuf| {
        let list: List = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let module = module(&path.file_stem().unwrap().to_string_lossy(), &list);
        (list, module)
    };
    let modules: Vec<_> = lists().iter().map(read).collect();
    let home = Home::new();
    let mut child = Command::new(harness::deps().python())
        .arg(harness::repository().join("tests/third-party/proto_values.py"))
        .env("HYPOTHESIS_STORAGE_DIRECTORY", home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut asked = child.stdin.take().unwrap();
    let mut say = |value: &Value| writeln!(asked, "{value}").unwrap();
    say(&modules
        .iter()
        .map(|(list, module)| shown(list, module))
        .collect());
    let mut report = Value::Null;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let question: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if let Some(last) = question.get("report") {
            report = last.clone();
            continue;
        }
        let (_, module) = &modules[usize::try_from(question["module"].as_u64().unwrap()).unwrap()];
        say(&answer(
            module.tool(question["tool"].as_str().unwrap()).unwrap(),
            &question,
        ));
    }
    assert!(child.wait().unwrap().success());
    let count = |key: &str| report[key].as_u64().unwrap();
    let report: HashMap<_, _> = ["tools", "equal", "refused", "marked"]
        .into_iter()
        .map(|key| (key, count(key)))
        .collect();
    println!("{report:?}");
    assert_eq!(report["tools"], 397);
    assert!(
        report["equal"] > 5_000 && report["marked"] > 100,
        "{report:?}"
    );
    // Whole numbers beyond int64, and those that a double rounds: the program looks that each has
    // one.
    assert!((1..100).contains(&report["refused"]), "{report:?}");
}

/// Tools whose schemas once became messages that refused what the schema allows, or that Google's
/// runtime could not load; their calls by a client with that runtime, and what the server got.
#[test]
fn odd_schemas_have_messages_for_what_they_allow() {
    let list = |properties: Value| json!({ "type": "object", "properties": properties });
    let least = list(json!({
        "tags": { "type": "array", "items": { "type": "string" }, "minItems": 1 },
        "map": { "type": "object", "additionalProperties": { "type": "string" }, "minProperties": 1 },
    }));
    let names = list(json!({
        "_id": { "type": "string" }, "id": { "type": "string" }, "fooBar": { "type": "string" }, "foo_bar": { "type": "string" },
        "__x": { "type": "integer" }, "x": { "type": "array", "items": { "type": "string" } }, "_x": { "type": "boolean" },
    }));
    let pattern = list(json!({
        "digits": { "type": "string", "pattern": "^\\d{2,4}$" }, "word": { "type": "string", "pattern": "^[\\w-]+\\b$" },
        "blank": { "type": "string", "pattern": "^\\s$" },
    }));
    let home = Home::new();
    let script = home.write("listed.py", include_str!("listed.py"));
    let tools = [("least", &least), ("names", &names), ("pattern", &pattern)];
    let tools = tools.map(|(name, schema)| json!({ "name": name, "inputSchema": schema }));
    let file = home.write("odd.tools", &Value::from(tools.to_vec()).to_string());
    let gateway = Gateway::start(
        &home,
        &format!("[servers.s]\ncommand = \"python3\"\nargs = [{script:?}, {file:?}]\n"),
    );
    gateway.ready("s");
    let call = |tool: &str, arguments: Value| {
        let words = [
            "--typed",
            tool,
            &arguments.to_string(),
            "--ws",
            &websocket(&gateway),
        ];
        proto_client(&words)["answer"].clone()
    };
    for (tool, arguments) in [
        ("least", json!({})),
        ("least", json!({ "tags": ["a"] })),
        (
            "names",
            json!({ "_id": "a", "id": "b", "fooBar": "c", "foo_bar": "d", "__x": 1, "_x": true, "x": ["e"] }),
        ),
        (
            "pattern",
            json!({ "digits": "123", "word": "a-b_1", "blank": "\u{a0}" }),
        ),
    ] {
        let answer = call(&format!("s_{tool}"), arguments.clone());
        assert_eq!(
            answer,
            json!([format!("{tool} of the server")]),
            "{arguments}"
        );
    }
    for arguments in [
        json!({ "digits": "\u{e56}\u{1955}" }),
        json!({ "word": "\u{e9}" }),
        json!({ "blank": "\u{200b}" }),
    ] {
        let answer = call("s_pattern", arguments.clone());
        assert_eq!(answer[0], json!(-33001), "{arguments}: {answer}");
    }
}
