//! Requests of other participants, the service that answers them, and one made of tools: `initialize`, `ping`, the lists
//! and `tools/call`.

use std::{future::ready, pin::Pin, sync::Arc};

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use wire::{mcp::Version, mcpx::check::Call};

use super::error::RpcError;

type Outcome = Result<Value, String>;
type Run = Arc<dyn Fn(Value) -> Pin<Box<dyn Future<Output = Outcome> + Send>> + Send + Sync>;

#[derive(Clone)]
struct Tool {
    name: String,
    definition: Value,
    run: Run,
}

/// An MCP server made of tools. Lists other than `tools/list` are empty.
#[derive(Clone)]
pub struct Tools {
    name: String,
    version: String,
    tools: Vec<Tool>,
}

impl Tools {
    /// A server without tools. Name and version are those of the handshake.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Self {
        Self { name: name.to_owned(), version: version.to_owned(), tools: Vec::new() }
    }

    /// Adds a tool; it replaces one of the same name. `schema` is the JSON Schema of its arguments.
    ///
    /// `run` gets the arguments unchecked: it must validate them itself. A string that it returns becomes text content,
    /// an object text and structured content, any other value text. `Err` becomes a result with `isError`, for the model
    /// to read.
    #[must_use]
    pub fn tool<F, R>(mut self, name: &str, description: &str, schema: Value, run: F) -> Self
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, String>> + Send + 'static,
    {
        self.tools.retain(|tool| tool.name != name);
        let definition = json!({ "name": name, "description": description, "inputSchema": schema });
        let run: Run = Arc::new(move |arguments| Box::pin(run(arguments)));
        self.tools.push(Tool { name: name.to_owned(), definition, run });
        self
    }

    fn initialize(&self, params: &Value) -> Value {
        let requested = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        json!({
            "protocolVersion": Version::answer_to(requested).as_str(),
            "capabilities": { "tools": {} },
            "serverInfo": { "name": self.name, "version": self.version },
        })
    }

    fn call(&self, mut params: Value) -> AnswerFuture {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let Some(tool) = self.tools.iter().find(|tool| tool.name == name) else {
            let error = RpcError::invalid_params(format!("unknown tool `{name}`"));
            return Box::pin(ready(Err(error)));
        };
        let arguments = params.get_mut("arguments").map_or_else(|| json!({}), Value::take);
        let running = (tool.run)(arguments);
        Box::pin(async move { raw(&result(running.await)) })
    }
}

/// The MCP result of a tool call.
fn result(outcome: Outcome) -> Value {
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    match outcome {
        Ok(Value::String(string)) => json!({ "content": text(&string) }),
        Ok(object @ Value::Object(_)) => {
            json!({ "content": text(&object.to_string()), "structuredContent": object })
        }
        Ok(other) => json!({ "content": text(&other.to_string()) }),
        Err(why) => json!({ "content": text(&why), "isError": true }),
    }
}

fn raw(value: &Value) -> Result<Box<RawValue>, RpcError> {
    to_raw_value(value).map_err(|error| RpcError::new(-32603, error.to_string()))
}

impl Serve for Tools {
    fn answer(&self, request: IncomingRequest) -> AnswerFuture {
        let params = request.call.params().unwrap_or(b"{}");
        let params: Value = match serde_json::from_slice(params) {
            Ok(params) => params,
            Err(error) => return Box::pin(ready(Err(RpcError::invalid_params(error.to_string())))),
        };
        let result = match request.call.method() {
            "tools/call" => return self.call(params),
            "initialize" => raw(&self.initialize(&params)),
            "ping" => raw(&json!({})),
            "tools/list" => {
                raw(&json!({ "tools": self.tools.iter().map(|tool| &tool.definition).collect::<Vec<_>>() }))
            }
            "prompts/list" => raw(&json!({ "prompts": [] })),
            "resources/list" => raw(&json!({ "resources": [] })),
            "resources/templates/list" => raw(&json!({ "resourceTemplates": [] })),
            other => Err(RpcError::method_not_found(other)),
        };
        Box::pin(ready(result))
    }
}

/// Requests that are answered at one time. Further ones are answered with an error that says to try again.
pub const CALLS_MAX: usize = 64;

/// A request that names this participant in `to` and whose kind and payload agree.
#[derive(Debug, Clone)]
pub struct IncomingRequest {
    /// The sender; the gateway vouches for it.
    pub from: String,
    /// The id of the envelope.
    pub envelope_id: String,
    /// The proposal that the request fulfils, if it names one.
    pub fulfils: Option<FulfilledProposal>,
    /// Method and params.
    pub call: Call,
}

/// The proposal that a request fulfils.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FulfilledProposal {
    /// The proposal's id.
    pub proposal: String,
    /// The proposer; `None` if this participant has not received the proposal.
    pub proposer: Option<String>,
}

/// The result of a request as JSON, or an error.
pub type ServeResult = Result<Box<RawValue>, RpcError>;

/// The future of a [`ServeResult`].
pub type AnswerFuture = Pin<Box<dyn Future<Output = ServeResult> + Send>>;

/// Answers requests. [`Tools`] is an implementation for plain tools.
///
/// It gets `mcp/request` envelopes that name the participant, each (sender, id) once; never proposals. Requests run
/// concurrently, at most [`CALLS_MAX`]. A panic is answered as an internal error.
pub trait Serve: Send + Sync + 'static {
    /// Answers one request.
    fn answer(&self, request: IncomingRequest) -> AnswerFuture;
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use wire::mcpx::check::{Act, strict};

    use super::*;

    fn request(method: &str, params: &Value) -> IncomingRequest {
        let payload = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let Ok(Act::Request(call)) = strict(&format!("mcp/request:{method}"), Bytes::from(payload)) else {
            panic!("{method} is not a request");
        };
        IncomingRequest { from: "a".into(), envelope_id: "1".into(), fulfils: None, call }
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
            let answer = served().answer(request(method, &params)).await.unwrap();
            assert_eq!(serde_json::from_str::<Value>(answer.get()).unwrap(), expect, "{method}");
        }
    }

    #[tokio::test]
    async fn unknown_tools_and_methods_are_errors() {
        for (method, params, code) in
            [("tools/call", json!({ "name": "none" }), -32602), ("logging/setLevel", json!({}), -32601)]
        {
            assert_eq!(served().answer(request(method, &params)).await.unwrap_err().code, code);
        }
    }

    #[tokio::test]
    async fn a_later_tool_replaces_one_of_the_same_name() {
        let list = served().answer(request("tools/list", &json!({}))).await.unwrap();
        let list: Value = serde_json::from_str(list.get()).unwrap();
        assert_eq!(list["tools"].as_array().unwrap().len(), 2);
        assert_eq!(list["tools"][0]["description"], "Says it");
    }
}
