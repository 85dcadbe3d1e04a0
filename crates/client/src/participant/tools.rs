//! Tools of a participant as an MCP server: `initialize`, `ping`, the lists and `tools/call`. Must not know who asks.

use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::error::RpcError;
use super::serve::{Answering, Asked, Serve};

/// Revisions of MCP that the handshake agrees to; the first is offered to whoever asks for another.
const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

type Outcome = Result<Value, String>;
type Run = Arc<dyn Fn(Value) -> Pin<Box<dyn Future<Output = Outcome> + Send>> + Send + Sync>;

/// One tool.
#[derive(Clone)]
struct Tool {
    name: String,
    listed: Value,
    run: Run,
}

/// An MCP server made of tools. Lists other than `tools/list` are empty.
#[derive(Clone)]
pub struct Tools {
    name: String,
    version: String,
    all: Vec<Tool>,
}

impl Tools {
    /// A server of this name without tools.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Self {
        Self { name: name.to_owned(), version: version.to_owned(), all: Vec::new() }
    }

    /// Adds a tool, in place of one of the same name. `schema` is the JSON Schema of its arguments.
    ///
    /// The arguments are not checked against the schema: `run` must. What it gives becomes the tool's result: a string
    /// as text, anything else as structured content. `Err` is a result with `isError`, which models read.
    #[must_use]
    pub fn tool<F, R>(mut self, name: &str, description: &str, schema: Value, run: F) -> Self
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, String>> + Send + 'static,
    {
        self.all.retain(|tool| tool.name != name);
        let listed = json!({ "name": name, "description": description, "inputSchema": schema });
        let run: Run = Arc::new(move |arguments| Box::pin(run(arguments)));
        self.all.push(Tool { name: name.to_owned(), listed, run });
        self
    }

    fn initialize(&self, params: &Value) -> Value {
        let asked = params.get("protocolVersion").and_then(Value::as_str);
        let [newest, ..] = REVISIONS;
        let version = REVISIONS.into_iter().find(|known| Some(*known) == asked).unwrap_or(newest);
        json!({
            "protocolVersion": version,
            "capabilities": { "tools": {} },
            "serverInfo": { "name": self.name, "version": self.version },
        })
    }

    fn call(&self, mut params: Value) -> Answering {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let Some(tool) = self.all.iter().find(|tool| tool.name == name) else {
            let error = RpcError::invalid_params(format!("there is no tool `{name}`"));
            return Box::pin(ready(Err(error)));
        };
        let arguments = params.get_mut("arguments").map_or_else(|| json!({}), Value::take);
        let running = (tool.run)(arguments);
        Box::pin(async move { raw(&result(running.await)) })
    }
}

/// A tool's result as MCP has it.
fn result(outcome: Outcome) -> Value {
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    match outcome {
        Ok(Value::String(said)) => json!({ "content": text(&said) }),
        Ok(object @ Value::Object(_)) => {
            json!({ "content": text(&object.to_string()), "structuredContent": object })
        }
        Ok(other) => json!({ "content": text(&other.to_string()) }),
        Err(said) => json!({ "content": text(&said), "isError": true }),
    }
}

fn raw(value: &Value) -> Result<Box<RawValue>, RpcError> {
    to_raw_value(value).map_err(|error| RpcError::new(-32603, error.to_string()))
}

impl Serve for Tools {
    fn answer(&self, asked: Asked) -> Answering {
        let params = asked.call.params().unwrap_or(b"{}");
        let params: Value = match serde_json::from_slice(params) {
            Ok(params) => params,
            Err(error) => return Box::pin(ready(Err(RpcError::invalid_params(error.to_string())))),
        };
        let result = match asked.call.method() {
            "tools/call" => return self.call(params),
            "initialize" => raw(&self.initialize(&params)),
            "ping" => raw(&json!({})),
            "tools/list" => {
                raw(&json!({ "tools": self.all.iter().map(|tool| &tool.listed).collect::<Vec<_>>() }))
            }
            "prompts/list" => raw(&json!({ "prompts": [] })),
            "resources/list" => raw(&json!({ "resources": [] })),
            "resources/templates/list" => raw(&json!({ "resourceTemplates": [] })),
            other => Err(RpcError::method_not_found(other)),
        };
        Box::pin(ready(result))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use wire::mcpx::check::{Act, strict};

    use super::*;

    fn asked(method: &str, params: &Value) -> Asked {
        let payload = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let Ok(Act::Request(call)) = strict(&format!("mcp/request:{method}"), Bytes::from(payload)) else {
            panic!("{method} is no request");
        };
        Asked { from: "a".into(), envelope: "1".into(), fulfils: None, call }
    }

    fn served() -> Tools {
        Tools::new("t", "1")
            .tool("say", "Old", json!({}), |_| ready(Ok(json!("old"))))
            .tool("say", "Says it", json!({ "type": "object" }), |arguments| {
                ready(arguments.get("text").cloned().ok_or_else(|| "`text` is missing".to_owned()))
            })
            .tool("sum", "", json!({}), |_| ready(Ok(json!({ "sum": 3 }))))
    }

    #[tokio::test]
    async fn requests_and_their_answers() {
        for (method, params, expect) in [
            ("ping", json!({}), json!({})),
            ("prompts/list", json!({}), json!({ "prompts": [] })),
            (
                "initialize",
                json!({ "protocolVersion": "2025-06-18" }),
                json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                        "serverInfo": { "name": "t", "version": "1" } }),
            ),
            (
                "tools/call",
                json!({ "name": "say", "arguments": { "text": "hi" } }),
                json!({ "content": [{ "type": "text", "text": "hi" }] }),
            ),
            (
                "tools/call",
                json!({ "name": "say" }),
                json!({ "content": [{ "type": "text", "text": "`text` is missing" }], "isError": true }),
            ),
            (
                "tools/call",
                json!({ "name": "sum" }),
                json!({ "content": [{ "type": "text", "text": "{\"sum\":3}" }], "structuredContent": { "sum": 3 } }),
            ),
        ] {
            let answer = served().answer(asked(method, &params)).await.unwrap();
            assert_eq!(serde_json::from_str::<Value>(answer.get()).unwrap(), expect, "{method}");
        }
    }

    #[tokio::test]
    async fn what_is_not_there_is_an_error() {
        for (method, params, code) in
            [("tools/call", json!({ "name": "none" }), -32602), ("logging/setLevel", json!({}), -32601)]
        {
            assert_eq!(served().answer(asked(method, &params)).await.unwrap_err().code, code);
        }
    }

    #[tokio::test]
    async fn a_later_tool_replaces_one_of_its_name() {
        let listed = served().answer(asked("tools/list", &json!({}))).await.unwrap();
        let listed: Value = serde_json::from_str(listed.get()).unwrap();
        assert_eq!(listed["tools"].as_array().unwrap().len(), 2);
        assert_eq!(listed["tools"][0]["description"], "Says it");
    }
}
