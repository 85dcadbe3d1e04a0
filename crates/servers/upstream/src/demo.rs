//! Built-in demo server: three tools, one resource and one prompt, in both eras.
//!
//! `portmoot serve` starts it when no server is configured. Each answer is a function of the
//! request and the time.

use std::sync::Arc;

use bytes::Bytes;
use client::{Closing, LinkInbox, LinkTransport, SendError, SendMeta};
use model::{Answer, Form, Outcome, Payload, Request};
use platform::unix_ms;
use serde_json::{Map, Value, json};
use wire::mcp::{Params, Version};
use wire::rpc::{self, Message, MessageKind};

/// A JSON-RPC error: code and message.
pub(crate) type DemoError = (i64, String);

/// The members that [`complete`] adds to a modern result of a call.
const MODERN_RESULT: &str = concat!(
    r#","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"portmoot-demo","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}"#
);
const NOTE: &str = "This server is built into Portmoot, so that the first call works before anything is configured. \
Add your own servers to portmoot.toml, or pass an existing client file with --mcp-config.";

/// The link to the demo server, which answers each message before it is taken.
pub(crate) struct DemoLink(pub(crate) Arc<dyn LinkInbox>);

impl LinkTransport for DemoLink {
    fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), SendError> {
        if let Some(answer) = serve(frame) {
            // One answer is all that this link ever receives for a request.
            let _ = self.0.frame(answer, meta.request);
        }
        Ok(())
    }

    fn keeps_state(&self) -> bool {
        false
    }

    fn has_request_streams(&self) -> bool {
        true
    }

    fn close(&self) -> Closing<'_> {
        Box::pin(async {})
    }
}

/// Answers one message; `None` for a notification.
fn serve(frame: Bytes) -> Option<Bytes> {
    let message = Message::read(frame).ok()?;
    let id = (message.shape() == MessageKind::Request).then(|| message.id())??;
    let read = Params::read(&message).ok();
    let params = message
        .params()
        .and_then(|raw| serde_json::from_slice(raw).ok())
        .unwrap_or_default();
    let modern = read.is_some_and(|params| params.is_modern());
    Some(
        match answer(message.method(), &params, modern, unix_ms() / 1000) {
            Ok(result) => rpc::result(id, result.to_string().as_bytes()),
            Err((code, why)) => rpc::error(Some(id), code, &why, None),
        },
    )
}

/// Answers a caller's request; `own` is the server's own name or URI, if the caller wrote another.
pub(crate) fn respond(request: &Request, own: Option<&str>) -> Answer {
    let body = request.payload.body_bytes();
    let form = request.payload.form;
    let method = request.method.as_str();
    let name = own.or_else(|| request.target.as_ref().map(model::Target::as_str));
    let modern = form == Form::Modern;
    if let Some(result) = (method == "tools/call" && name == Some("echo"))
        .then(|| echo(body, modern))
        .flatten()
    {
        return Answer {
            outcome: Outcome::Ok,
            payload: Payload::body(form, result),
        };
    }
    let mut params: Value = serde_json::from_slice(body).unwrap_or_default();
    if let (Some(own), Some(params)) = (own, params.as_object_mut()) {
        let key = if method == "resources/read" {
            "uri"
        } else {
            "name"
        };
        params.insert(key.into(), own.into());
    }
    let (outcome, body) = match answer(method, &params, modern, unix_ms() / 1000) {
        Ok(result) => (Outcome::Ok, result.to_string()),
        Err((code, why)) => (
            Outcome::Error,
            json!({ "code": code, "message": why }).to_string(),
        ),
    };
    Answer {
        outcome,
        payload: Payload::body(form, body),
    }
}

/// The result of a valid `echo`, with the text as the client wrote it. Benchmarks call `echo`:
/// building a tree here would dominate what they measure.
fn echo(params: &[u8], modern: bool) -> Option<Vec<u8>> {
    let mut place = None;
    let outline = json::outline(params, &[b"arguments"], |key, member| {
        if key == b"arguments" {
            place = Some(member.span);
        }
    })?;
    let arguments = outline.members(params, place?, 1).ok()?;
    let text = arguments
        .get("text")
        .filter(|text| text.raw.starts_with(b"\""))?;
    let after: &[u8] = if modern {
        MODERN_RESULT.as_bytes()
    } else {
        b""
    };
    Some(
        [
            b"{\"content\":[{\"type\":\"text\",\"text\":",
            text.raw,
            b"}]",
            after,
            b"}",
        ]
        .concat(),
    )
}

/// Answers one request; `modern` is its era, `unix_secs` the current time.
///
/// # Errors
/// The JSON-RPC error of the answer.
pub(crate) fn answer(
    method: &str,
    params: &Value,
    modern: bool,
    unix_secs: u64,
) -> Result<Value, DemoError> {
    let mut result = match method {
        "initialize" if !modern => initialize(params),
        "server/discover" if modern => discover(),
        "ping" if !modern => json!({}),
        "tools/list" => json!({ "tools": tools() }),
        "tools/call" => call(params, unix_secs)?,
        "resources/list" => json!({ "resources": [{
            "uri": "demo://note", "name": "note", "title": "What this is", "mimeType": "text/plain" }] }),
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        "resources/read" => read(params, modern)?,
        "prompts/list" => {
            json!({ "prompts": [{ "name": "greet", "description": "A greeting to complete",
            "arguments": [{ "name": "name", "description": "Who is greeted", "required": true }] }] })
        }
        "prompts/get" => prompt(params)?,
        _ => return Err((-32601, format!("method not found: {method}"))),
    };
    if let (true, Some(members)) = (modern, result.as_object_mut()) {
        complete(method, members);
    }
    Ok(result)
}

fn complete(method: &str, members: &mut Map<String, Value>) {
    members.insert("resultType".into(), "complete".into());
    if method.ends_with("/list") || matches!(method, "resources/read" | "server/discover") {
        members.insert("ttlMs".into(), 3_600_000.into());
        members.insert("cacheScope".into(), "public".into());
    }
    members.insert(
        "_meta".into(),
        json!({ "io.modelcontextprotocol/serverInfo": info() }),
    );
}

fn info() -> Value {
    json!({ "name": "portmoot-demo", "version": env!("CARGO_PKG_VERSION") })
}

fn capabilities() -> Value {
    json!({ "tools": {}, "resources": {}, "prompts": {} })
}

fn initialize(params: &Value) -> Value {
    let asked = params
        .get("protocolVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let version = Version::answer_to(asked).as_str();
    json!({ "protocolVersion": version, "capabilities": capabilities(), "serverInfo": info(), "instructions": NOTE })
}

fn discover() -> Value {
    let versions: Vec<&str> = Version::ALL
        .iter()
        .map(|version| version.as_str())
        .collect();
    json!({ "supportedVersions": versions, "capabilities": capabilities(), "instructions": NOTE })
}

fn tools() -> Value {
    json!([
        { "name": "echo", "title": "Echo", "description": "Returns the text.",
          "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] },
          "annotations": { "readOnlyHint": true } },
        { "name": "add", "title": "Add", "description": "Adds two numbers.",
          "inputSchema": { "type": "object", "required": ["a", "b"],
                           "properties": { "a": { "type": "number" }, "b": { "type": "number" } } },
          "outputSchema": { "type": "object", "required": ["sum"], "properties": { "sum": { "type": "number" } } },
          "annotations": { "readOnlyHint": true } },
        { "name": "now", "title": "Now", "description": "Returns the seconds since 1970, by this machine's clock.",
          "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true } }
    ])
}

fn call(params: &Value, unix_secs: u64) -> Result<Value, DemoError> {
    let name = params
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let argument = |key: &str| {
        params
            .get("arguments")
            .and_then(|arguments| arguments.get(key))
    };
    let text = |text: String| json!([{ "type": "text", "text": text }]);
    match name {
        "echo" => match argument("text").and_then(Value::as_str) {
            Some(value) => Ok(json!({ "content": text(value.to_owned()) })),
            None => {
                Ok(json!({ "content": text("`text` must be a string".into()), "isError": true }))
            }
        },
        "add" => match (
            argument("a").and_then(Value::as_f64),
            argument("b").and_then(Value::as_f64),
        ) {
            (Some(a), Some(b)) => Ok(
                json!({ "content": text((a + b).to_string()), "structuredContent": { "sum": a + b } }),
            ),
            _ => Ok(
                json!({ "content": text("`a` and `b` must be numbers".into()), "isError": true }),
            ),
        },
        "now" => Ok(json!({ "content": text(unix_secs.to_string()) })),
        _ => Err((-32602, format!("unknown tool: {name}"))),
    }
}

fn read(params: &Value, modern: bool) -> Result<Value, DemoError> {
    match params.get("uri").and_then(Value::as_str) {
        Some("demo://note") => Ok(
            json!({ "contents": [{ "uri": "demo://note", "mimeType": "text/plain", "text": NOTE }] }),
        ),
        _ => Err((
            if modern { -32602 } else { -32002 },
            "resource not found".into(),
        )),
    }
}

fn prompt(params: &Value) -> Result<Value, DemoError> {
    if params.get("name").and_then(Value::as_str) != Some("greet") {
        return Err((-32602, "unknown prompt".into()));
    }
    let name = params
        .get("arguments")
        .and_then(|a| a.get("name"))
        .and_then(Value::as_str);
    let name = name.ok_or_else(|| (-32602, "missing argument `name`".to_string()))?;
    Ok(
        json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": format!("Greet {name} warmly.") } }] }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_item_works_in_both_eras() {
        for modern in [false, true] {
            let ask = |method: &str, params: Value| answer(method, &params, modern, 7).unwrap();
            assert_eq!(
                ask("tools/list", json!({}))["tools"]
                    .as_array()
                    .unwrap()
                    .len(),
                3
            );
            let sum = ask(
                "tools/call",
                json!({ "name": "add", "arguments": { "a": 1, "b": 2.5 } }),
            );
            assert_eq!(sum["structuredContent"]["sum"], 3.5);
            let now = ask("tools/call", json!({ "name": "now" }));
            assert_eq!(now["content"][0]["text"], "7");
            assert!(
                ask("resources/read", json!({ "uri": "demo://note" }))["contents"][0]["text"]
                    .is_string()
            );
            let greeting = ask(
                "prompts/get",
                json!({ "name": "greet", "arguments": { "name": "Ada" } }),
            );
            assert_eq!(
                greeting["messages"][0]["content"]["text"],
                "Greet Ada warmly."
            );
            assert_eq!(greeting.get("resultType").is_some(), modern);
        }
    }

    #[test]
    fn the_fast_path_of_echo_gives_the_same_result() {
        for modern in [false, true] {
            let params = br#"{"name":"echo","arguments":{"text":"a\"\u00e9"}}"#;
            let fast: Value = serde_json::from_slice(&echo(params, modern).unwrap()).unwrap();
            let params: Value = serde_json::from_slice(params).unwrap();
            assert_eq!(fast, answer("tools/call", &params, modern, 0).unwrap());
        }
    }

    #[test]
    fn unknown_names_are_errors() {
        for (method, params, code) in [
            ("tools/call", json!({ "name": "nope" }), -32602),
            ("resources/read", json!({ "uri": "demo://nope" }), -32002),
            ("prompts/get", json!({ "name": "greet" }), -32602),
            ("sampling/createMessage", json!({}), -32601),
        ] {
            assert_eq!(
                answer(method, &params, false, 0).unwrap_err().0,
                code,
                "{method}"
            );
        }
    }
}
