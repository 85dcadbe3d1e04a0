//! Messages of proto-mcp written and read, beside the equal JSON-RPC and a copy of the bytes; and
//! JSON turned into protobuf and back.
//!
//!     codec [--rounds 40]

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

use portmoot_bench::flags::Flags;
use prost::Message as _;
use schema::{FieldNumbering, ListedTool as Described, Module, ToolSchema};
use serde_json::{Value, json};
use transcode::client;
use wire::proto::contract::mcp_message::Payload;
use wire::proto::contract::{
    CallToolRequest, CallToolResponse, ListToolsResponse, McpMessage, ReadResourceResponse,
    ResourceContent, Tool, ToolContent, ToolResult, call_tool_response, resource_content, tool,
    tool_content,
};

/// How long one measurement lasts at least, in seconds.
const MEASURED: f64 = 0.002;
/// Bytes of the large resource.
const BLOB: usize = 1 << 20;

/// One message in both forms.
struct Row {
    name: &'static str,
    json: Value,
    proto: McpMessage,
}

fn input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "minLength": 1 }, "limit": { "type": "integer", "minimum": 1, "maximum": 100 },
            "offset": { "type": "integer" }, "exact": { "type": "boolean" }, "score": { "type": "number" },
            "tags": { "type": "array", "items": { "type": "string" } }, "language": { "type": "string" },
        },
        "required": ["query"],
    })
}

fn schema() -> ToolSchema {
    let input = input().to_string();
    let tool = Described {
        name: "find_documents",
        description: None,
        input: input.as_bytes(),
        output: None,
    };
    let module = Module::new("search.v1", &[tool], &FieldNumbering::default());
    module.tool("find_documents").expect("it converts").clone()
}

fn arguments() -> Value {
    json!({
        "query": "every document about the harbour of Lisbon and its ships", "limit": 20, "offset": 40, "exact": false,
        "score": 0.75, "tags": ["harbour", "ships", "history"], "language": "pt",
    })
}

fn rows(schema: &ToolSchema) -> Vec<Row> {
    let message = |payload| McpMessage {
        id: 7,
        payload: Some(payload),
    };
    let answer = |result: Value| json!({ "jsonrpc": "2.0", "id": 7, "result": result });
    let typed = schema
        .arguments_from_json(arguments().to_string().as_bytes())
        .expect("they fit");
    let call = CallToolRequest {
        name: "find_documents".to_owned(),
        arguments: Some(prost_types::Any {
            type_url: typed.type_url(),
            value: typed.bytes(),
        }),
        ..Default::default()
    };
    let params = json!({ "name": "find_documents", "arguments": arguments() });
    let text = "A line of text, as tools return it.\n".repeat(60);
    let content = ToolContent {
        mime_type: "text/plain".to_owned(),
        content: Some(tool_content::Content::Text(text.clone())),
    };
    let result = CallToolResponse {
        result: Some(call_tool_response::Result::Success(ToolResult {
            content: vec![content],
            is_error: false,
        })),
        ..Default::default()
    };
    let set = schema.set();
    let name = |at| format!("search_find_documents_{at:03}");
    let about =
        "Finds documents by their words, newest first. Returns a page of titles and places.";
    let listed = |source: &dyn Fn(usize) -> tool::SchemaSource, count| ListToolsResponse {
        tools: (0..count)
            .map(|at| Tool {
                name: name(at),
                description: about.to_owned(),
                metadata: HashMap::new(),
                schema_source: Some(source(at)),
            })
            .collect(),
        next_cursor: String::new(),
    };
    let reference = |at| {
        tool::SchemaSource::BsrRef(format!(
            "127.0.0.1:7070/portmoot/search/search.v1.Find{at:03}:main"
        ))
    };
    let inline = |_| tool::SchemaSource::InlineSchema(set.clone());
    let tools = |count| -> Vec<Value> {
        (0..count)
            .map(|at| json!({ "name": name(at), "description": about, "inputSchema": input() }))
            .collect()
    };
    let blob: Vec<u8> = (0..BLOB)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let resource = json!({ "uri": "file:///blob", "mimeType": "application/octet-stream", "blob": base64(&blob) });
    let contents = ReadResourceResponse {
        contents: vec![ResourceContent {
            uri: "file:///blob".to_owned(),
            mime_type: "application/octet-stream".to_owned(),
            content: Some(resource_content::Content::Blob(blob.into())),
        }],
    };
    vec![
        Row {
            name: "call, 7 arguments",
            json: json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }),
            proto: message(Payload::CallToolRequest(call)),
        },
        Row {
            name: "result, 2 KB of text",
            json: answer(json!({ "content": [{ "type": "text", "text": text }] })),
            proto: message(Payload::CallToolResponse(result)),
        },
        Row {
            name: "list of 100 tools, schemas inline",
            json: answer(json!({ "tools": tools(100) })),
            proto: message(Payload::ListToolsResponse(listed(&inline, 100))),
        },
        Row {
            name: "list of 100 tools, references",
            json: answer(json!({ "tools": tools(100) })),
            proto: message(Payload::ListToolsResponse(listed(&reference, 100))),
        },
        Row {
            name: "resource, 1 MiB blob",
            json: answer(json!({ "contents": [resource] })),
            proto: message(Payload::ReadResourceResponse(contents)),
        },
    ]
}

/// Base64 with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let byte = DIGITS[(bits >> (18 - 6 * digit)) as usize & 63];
            text.push(if digit > three.len() {
                '='
            } else {
                char::from(byte)
            });
        }
    }
    text
}

/// The best time of one run, in ns.
fn best(rounds: usize, way: &mut dyn FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..rounds {
        let (begun, mut runs) = (Instant::now(), 0_u32);
        while begun.elapsed().as_secs_f64() < MEASURED {
            (0..4).for_each(|_| way());
            runs += 4;
        }
        best = best.min(begun.elapsed().as_secs_f64() * 1e9 / f64::from(runs));
    }
    best
}

fn main() {
    let rounds = Flags::read().get("--rounds", 40);
    let schema = schema();
    println!(
        "| message | JSON bytes | protobuf bytes | write JSON ns | write protobuf ns | ratio | read JSON ns | read protobuf ns | ratio | copy ns |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for Row { name, json, proto } in rows(&schema) {
        let (text, bytes) = (
            serde_json::to_vec(&json).expect("it is written"),
            proto.encode_to_vec(),
        );
        let write_json = best(rounds, &mut || drop(black_box(serde_json::to_vec(&json))));
        let write = best(rounds, &mut || drop(black_box(proto.encode_to_vec())));
        let read_json = best(rounds, &mut || {
            drop(black_box(serde_json::from_slice::<Value>(&text)))
        });
        let shared = bytes::Bytes::from(bytes.clone());
        let read = best(rounds, &mut || {
            drop(black_box(McpMessage::decode(shared.clone())))
        });
        let copy = best(rounds, &mut || drop(black_box(bytes.clone())));
        println!(
            "| {name} | {} | {} | {write_json:.0} | {write:.0} | {:.2} | {read_json:.0} | {read:.0} | {:.2} | {copy:.0} |",
            text.len(),
            bytes.len(),
            write / write_json,
            read / read_json
        );
    }
    transcoding(rounds, &schema);
}

/// What a call costs where one side speaks JSON.
fn transcoding(rounds: usize, schema: &ToolSchema) {
    let text = arguments().to_string();
    let typed = schema
        .arguments_from_json(text.as_bytes())
        .expect("they fit");
    let any = prost_types::Any {
        type_url: typed.type_url(),
        value: typed.bytes(),
    };
    let call = CallToolRequest {
        name: "find_documents".to_owned(),
        arguments: Some(any),
        ..Default::default()
    };
    let call = bytes::Bytes::from(call.encode_to_vec());
    println!("\n| the arguments of that call | ns |\n|---|---|");
    let rows: [(&str, &mut dyn FnMut()); 5] = [
        ("JSON read to a tree, for comparison", &mut || {
            drop(black_box(serde_json::from_slice::<Value>(text.as_bytes())))
        }),
        ("JSON to protobuf", &mut || {
            drop(black_box(
                schema
                    .arguments_from_json(text.as_bytes())
                    .expect("they fit")
                    .bytes(),
            ))
        }),
        ("protobuf to JSON", &mut || {
            drop(black_box(schema.json(&typed).expect("it is written")))
        }),
        ("the schema's rules", &mut || {
            schema.validate(black_box(&typed)).expect("they fit")
        }),
        (
            "a client's call, checked, to JSON-RPC parameters",
            &mut || {
                drop(black_box(
                    client::call_params(&call, schema).expect("it fits"),
                ))
            },
        ),
    ];
    for (name, way) in rows {
        println!("| {name} | {:.0} |", best(rounds, way));
    }
}
