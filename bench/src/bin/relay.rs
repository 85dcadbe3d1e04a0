//! One call and its answer on their way through: protobuf that passes untouched, beside JSON that
//! is rewritten, in one process.
//!
//!     relay [--rounds 40] [--text 2000]      bytes of the answer's text

use std::hint::black_box;
use std::time::Instant;

use bytes::Bytes;
use model::{Coding, Form};
use portmoot_bench::flags::Flags;
use schema::{FieldNumbering, ListedTool, Module, ToolSchema};
use serde_json::{Value, json};
use transcode::{client, server};
use wire::mcp::{Params, relay};
use wire::proto::{Content, PayloadKind, ProtoEnvelope, call, message};
use wire::rpc::{Id, Message};

/// Calls in one round.
const CALLS: u32 = 2_000;
/// The tool as the client and as the server name it.
const NAMES: [&str; 2] = ["search_find_documents", "find_documents"];

/// One way of passing the call and its answer on.
type Way<'a> = (&'static str, Box<dyn Fn() + 'a>);

fn schema() -> ToolSchema {
    let input = json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "minLength": 1 }, "limit": { "type": "integer", "minimum": 1, "maximum": 100 },
            "offset": { "type": "integer" }, "exact": { "type": "boolean" }, "score": { "type": "number" },
            "tags": { "type": "array", "items": { "type": "string" } }, "language": { "type": "string" },
        },
        "required": ["query"],
    });
    let input = input.to_string();
    let tool = ListedTool {
        name: NAMES[0],
        description: None,
        input: input.as_bytes(),
        output: None,
    };
    let module = Module::new("search.v1", &[tool], &FieldNumbering::default());
    module.tool(NAMES[0]).expect("it converts").clone()
}

fn arguments() -> Value {
    json!({
        "query": "every document about the harbour of Lisbon and its ships", "limit": 20, "offset": 40, "exact": false,
        "score": 0.75, "tags": ["harbour", "ships", "history"], "language": "pt",
    })
}

fn main() {
    let flags = Flags::read();
    let (rounds, text) = (
        flags.get("--rounds", 40),
        "x".repeat(flags.get("--text", 2_000)),
    );
    let schema = schema();
    let call =
        json!({ "name": NAMES[0], "arguments": arguments(), "_meta": { "progressToken": 7 } });
    let call =
        json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call }).to_string();
    let result = json!({ "content": [{ "type": "text", "text": text }] });
    let answer = json!({ "jsonrpc": "2.0", "id": 9, "result": result }).to_string();
    let typed = schema
        .arguments_from_json(arguments().to_string().as_bytes())
        .expect("they fit");
    let any = prost_types::Any {
        type_url: typed.type_url(),
        value: typed.bytes(),
    };
    let request = wire::proto::contract::CallToolRequest {
        name: NAMES[0].to_owned(),
        arguments: Some(any),
        ..Default::default()
    };
    let request = message(7, &PayloadKind::CallToolRequest.field_of(&request));
    let response =
        client::call_result(result.to_string().as_bytes(), None).expect("it is a result");
    let response = message(9, &response);
    let (call, answer) = (Bytes::from(call), Bytes::from(answer));
    println!(
        "JSON: call {} bytes, answer {}. Protobuf: call {} bytes, answer {}.\n",
        call.len(),
        answer.len(),
        request.len(),
        response.len()
    );

    let ways: [Way<'_>; 6] = [
        (
            "JSON read and written again",
            Box::new(|| rewritten(&call, &answer)),
        ),
        (
            "JSON spliced, as the gateway does",
            Box::new(|| spliced(&call, &answer)),
        ),
        (
            "protobuf by way of JSON, checked",
            Box::new(|| converted(&request, &response, &schema)),
        ),
        (
            "protobuf untouched, checked",
            Box::new(|| untouched(&request, &response, Some(&schema))),
        ),
        (
            "protobuf untouched, not checked",
            Box::new(|| untouched(&request, &response, None)),
        ),
        (
            "a copy of the bytes",
            Box::new(|| copied(&request, &response)),
        ),
    ];
    let mut best = [f64::MAX; 6];
    for _ in 0..rounds {
        for ((_, way), best) in ways.iter().zip(&mut best) {
            let start = Instant::now();
            (0..CALLS).for_each(|_| way());
            *best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS));
        }
    }
    println!("| call and answer | ns | ratio |\n|---|---|---|");
    for ((name, _), ns) in ways.iter().zip(best) {
        println!("| {name} | {ns:.0} | {:.2} |", ns / best[0]);
    }
}

/// The plain way: trees of both messages, with other ids and another name.
fn rewritten(call: &[u8], answer: &[u8]) {
    let mut read: Value = serde_json::from_slice(call).expect("it is JSON");
    read["id"] = 8.into();
    read["params"]["name"] = NAMES[1].into();
    black_box(serde_json::to_vec(&read).expect("it is written"));
    let mut read: Value = serde_json::from_slice(answer).expect("it is JSON");
    read["id"] = 7.into();
    black_box(serde_json::to_vec(&read).expect("it is written"));
}

fn spliced(call: &Bytes, answer: &Bytes) {
    let message = Message::read(call.clone()).expect("it is a message");
    let request = relay::decode_request(
        &Params::read(&message).expect("it is a request"),
        Form::Legacy,
    );
    let out = relay::OutgoingChanges {
        form: Form::Legacy,
        number: 8,
        own: Some(NAMES[1]),
        client_info: None,
        capabilities: b"{}",
        log_level: None,
        related_task: None,
        tasks: false,
        trace: None,
    };
    black_box(relay::encode_request(&request, Coding::Json, &out).expect("it is written"));
    let message = Message::read(answer.clone()).expect("it is a message");
    let answer = relay::decode_answer(&message, Form::Legacy);
    black_box(relay::encode_answer(
        &answer,
        "tools/call",
        Form::Legacy,
        &Id::number(7),
        &|_| None,
    ));
}

fn field(message: &Bytes) -> (PayloadKind, Bytes) {
    let Ok(ProtoEnvelope {
        content: Content::Payload(kind, field),
        ..
    }) = ProtoEnvelope::read(message)
    else {
        panic!("it is no message")
    };
    (kind, field)
}

fn untouched(request: &Bytes, response: &Bytes, schema: Option<&ToolSchema>) {
    let (kind, payload) = field(request);
    let named = call::read(kind, &payload)
        .expect("it is a call")
        .expect("it names a tool");
    if let Some(schema) = schema {
        let (_, body) = PayloadKind::split(&named.request.payload.bytes).expect("it is a field");
        assert!(client::is_own(&body, schema).expect("it is valid"));
    }
    black_box(call::write(&named.request, 8, Some(NAMES[1])).expect("it is written"));
    let (_, payload) = field(response);
    black_box((call::failed(&payload), message(7, &payload)));
}

/// What is done where one side speaks JSON, on both sides.
fn converted(request: &Bytes, response: &Bytes, schema: &ToolSchema) {
    let (kind, payload) = field(request);
    let named = call::read(kind, &payload)
        .expect("it is a call")
        .expect("it names a tool");
    let (_, body) = PayloadKind::split(&named.request.payload.bytes).expect("it is a field");
    let params = client::call_params(&body, schema).expect("they fit");
    let tool = server::schemas::SentTool {
        schema: schema.clone(),
        reference: None,
        takes_struct: false,
        names_output: false,
    };
    black_box(message(
        8,
        &server::call::request(&params, Some(&tool)).expect("it is written"),
    ));
    let (_, payload) = field(response);
    let result = server::answer(&payload, Some(schema))
        .expect("it is an answer")
        .expect("it is a result");
    let result =
        client::call_result(result.to_string().as_bytes(), Some(schema)).expect("it is written");
    black_box(message(7, &result));
}

fn copied(request: &[u8], response: &[u8]) {
    black_box((request.to_vec(), response.to_vec()));
}
