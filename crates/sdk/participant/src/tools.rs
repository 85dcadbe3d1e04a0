//! A server made of functions: tools, prompts and resources, with the handshake and the lists.

use std::{future::ready, sync::Arc};

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use wire::mcp::Version;

use crate::error::RpcError;
use crate::prompts::{Prompt, PromptArgument};
use crate::resources::Resource;
use crate::serve::{AnswerFuture, IncomingRequest, Outcome, Run, Serve};

#[derive(Clone)]
struct Tool {
    name: String,
    definition: Value,
    run: Run,
}

/// An MCP server made of tools, prompts and resources. Lists of what it does not have are empty.
#[derive(Clone)]
pub struct Tools {
    name: String,
    version: String,
    tools: Vec<Tool>,
    prompts: Vec<Prompt>,
    resources: Vec<Resource>,
}

impl Tools {
    /// A server without tools. Name and version are those of the handshake.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Self {
        let (tools, prompts, resources) = <_>::default();
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            tools,
            prompts,
            resources,
        }
    }

    /// Adds a tool; it replaces one of the same name. `schema` is the JSON Schema of its arguments.
    ///
    /// `run` gets the arguments unchecked: it must validate them itself. A string that it returns
    /// becomes text content, an object text and structured content, any other value text. `Err`
    /// becomes a result with `isError`, for the model to read.
    #[must_use]
    pub fn tool<F, R>(self, name: &str, description: &str, schema: Value, run: F) -> Self
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, String>> + Send + 'static,
    {
        self.tool_with_request(name, description, schema, move |arguments, _| {
            run(arguments)
        })
    }

    /// As [`Tools::tool`], for a tool that needs the request too: its sender (`from`, for which the
    /// gateway vouches; of a participant with `serves = true` it is the MCP client that calls), or
    /// the proposal that it fulfils.
    #[must_use]
    pub fn tool_with_request<F, R>(
        mut self,
        name: &str,
        description: &str,
        schema: Value,
        run: F,
    ) -> Self
    where
        F: Fn(Value, IncomingRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, String>> + Send + 'static,
    {
        self.tools.retain(|tool| tool.name != name);
        let definition = json!({ "name": name, "description": description, "inputSchema": schema });
        self.tools.push(Tool {
            name: name.to_owned(),
            definition,
            run: boxed(run),
        });
        self
    }

    /// Adds a prompt; it replaces one of the same name. `run` gets its arguments, unchecked but for
    /// the missing ones, and the request.
    ///
    /// A string that it returns becomes a user's message, an array is taken as MCP's messages.
    /// `Err` becomes an error of the request.
    #[must_use]
    pub fn prompt<F, R>(
        mut self,
        name: &str,
        description: &str,
        arguments: &[PromptArgument],
        run: F,
    ) -> Self
    where
        F: Fn(Value, IncomingRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, String>> + Send + 'static,
    {
        self.prompts.retain(|prompt| prompt.name() != name);
        self.prompts
            .push(Prompt::new(name, description, arguments, boxed(run)));
        self
    }

    /// Adds a resource; it replaces one of the same URI. With `{name}` in the URI it is a template,
    /// and `run` gets the parts as its arguments: one segment each, as it was written.
    ///
    /// A string that it returns is the text of the resource, any other value is written as JSON.
    /// `Err` becomes an error of the request.
    #[must_use]
    pub fn resource<F, R>(mut self, uri: &str, name: &str, mime_type: &str, run: F) -> Self
    where
        F: Fn(Value, IncomingRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, String>> + Send + 'static,
    {
        self.resources.retain(|resource| resource.uri() != uri);
        self.resources
            .push(Resource::new(uri, name, mime_type, boxed(run)));
        self
    }

    fn initialize(&self, params: &Value) -> Value {
        let requested = params
            .get("protocolVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let mut capabilities = json!({ "tools": {} });
        for (name, has) in [
            ("prompts", !self.prompts.is_empty()),
            ("resources", !self.resources.is_empty()),
        ] {
            if let Some(capabilities) = capabilities.as_object_mut().filter(|_| has) {
                capabilities.insert(name.to_owned(), json!({}));
            }
        }
        json!({
            "protocolVersion": Version::answer_to(requested).as_str(),
            "capabilities": capabilities,
            "serverInfo": { "name": self.name, "version": self.version },
        })
    }

    fn call(&self, mut params: Value, request: IncomingRequest) -> AnswerFuture {
        let name = params
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let Some(tool) = self.tools.iter().find(|tool| tool.name == name) else {
            return refused(RpcError::invalid_params(format!("unknown tool `{name}`")));
        };
        let arguments = params
            .get_mut("arguments")
            .map_or_else(|| json!({}), Value::take);
        let running = (tool.run)(arguments, request);
        Box::pin(async move { raw(&result(running.await)) })
    }

    fn get_prompt(&self, mut params: Value, request: IncomingRequest) -> AnswerFuture {
        let name = params
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let Some(prompt) = self.prompts.iter().find(|prompt| prompt.name() == name) else {
            return refused(RpcError::invalid_params(format!("unknown prompt `{name}`")));
        };
        let arguments = params
            .get_mut("arguments")
            .map_or_else(|| json!({}), Value::take);
        let got = prompt.get(arguments, request);
        Box::pin(async move { raw(&got.await?) })
    }

    fn read(&self, params: &Value, request: IncomingRequest) -> AnswerFuture {
        let uri = params
            .get("uri")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let found = self
            .resources
            .iter()
            .find_map(|resource| Some((resource, resource.parts(uri)?)));
        let Some((resource, parts)) = found else {
            return refused(Resource::unknown(uri, "there is no resource of this URI"));
        };
        let read = resource.read(uri, parts, request);
        Box::pin(async move { raw(&read.await?) })
    }

    fn resources(&self, templates: bool) -> Vec<&Value> {
        let wanted = self
            .resources
            .iter()
            .filter(|resource| resource.is_template() == templates);
        wanted.map(Resource::definition).collect()
    }
}

fn boxed<F, R>(run: F) -> Run
where
    F: Fn(Value, IncomingRequest) -> R + Send + Sync + 'static,
    R: Future<Output = Outcome> + Send + 'static,
{
    Arc::new(move |arguments, request| Box::pin(run(arguments, request)))
}

fn refused(error: RpcError) -> AnswerFuture {
    Box::pin(ready(Err(error)))
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
            "tools/call" => return self.call(params, request),
            "prompts/get" => return self.get_prompt(params, request),
            "resources/read" => return self.read(&params, request),
            "initialize" => raw(&self.initialize(&params)),
            "ping" => raw(&json!({})),
            "tools/list" => raw(
                &json!({ "tools": self.tools.iter().map(|tool| &tool.definition).collect::<Vec<_>>() }),
            ),
            "prompts/list" => raw(
                &json!({ "prompts": self.prompts.iter().map(Prompt::definition).collect::<Vec<_>>() }),
            ),
            "resources/list" => raw(&json!({ "resources": self.resources(false) })),
            "resources/templates/list" => {
                raw(&json!({ "resourceTemplates": self.resources(true) }))
            }
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

    fn request(method: &str, params: &Value) -> IncomingRequest {
        let payload =
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let Ok(Act::Request(call)) = strict(&format!("mcp/request:{method}"), Bytes::from(payload))
        else {
            panic!("{method} is not a request");
        };
        IncomingRequest {
            from: "a".into(),
            envelope_id: "1".into(),
            fulfils: None,
            call,
        }
    }

    fn served() -> Tools {
        Tools::new("t", "1")
            .tool("say", "Old", json!({}), |_| ready(Ok(json!("old"))))
            .tool("say", "Says it", json!({ "type": "object" }), |arguments| {
                ready(
                    arguments
                        .get("text")
                        .cloned()
                        .ok_or_else(|| "`text` is missing".to_owned()),
                )
            })
            .tool("sum", "", json!({}), |_| ready(Ok(json!({ "sum": 3 }))))
            .tool_with_request("who", "", json!({}), |_, request| {
                ready(Ok(json!(request.from)))
            })
    }

    fn all() -> Tools {
        let topic = PromptArgument {
            name: "topic".into(),
            description: "What about".into(),
            is_required: true,
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        served()
            .prompt(
                "brief",
                "Asks for a summary",
                &[topic],
                move |arguments, request| {
                    let about = text(&arguments["topic"]);
                    ready(Ok(json!(format!("Summarize {about} for {}", request.from))))
                },
            )
            .resource("note://all", "all", "text/plain", |_, _| {
                ready(Ok(json!("every note")))
            })
            .resource(
                "note://{day}/{name}.md",
                "note",
                "text/markdown",
                |parts, _| match parts["name"].as_str() {
                    Some("absent") => ready(Err("no such note".to_owned())),
                    _ => ready(Ok(parts)),
                },
            )
    }

    async fn answer(method: &str, params: Value) -> Result<Value, (i64, String)> {
        let answer = all().answer(request(method, &params)).await;
        answer
            .map(|raw| serde_json::from_str(raw.get()).unwrap())
            .map_err(|error| (error.code, error.message))
    }

    #[tokio::test]
    async fn prompts_and_resources_are_listed_and_read() {
        let greeting = answer("initialize", json!({})).await.unwrap();
        assert_eq!(
            greeting["capabilities"],
            json!({ "tools": {}, "prompts": {}, "resources": {} })
        );
        for (method, items, expect) in [
            (
                "prompts/list",
                "prompts",
                json!([{ "name": "brief", "description": "Asks for a summary",
                         "arguments": [{ "name": "topic", "description": "What about", "required": true }] }]),
            ),
            (
                "resources/list",
                "resources",
                json!([{ "uri": "note://all", "name": "all", "mimeType": "text/plain" }]),
            ),
            (
                "resources/templates/list",
                "resourceTemplates",
                json!([{ "uriTemplate": "note://{day}/{name}.md", "name": "note", "mimeType": "text/markdown" }]),
            ),
        ] {
            assert_eq!(
                answer(method, json!({})).await.unwrap()[items],
                expect,
                "{method}"
            );
        }
        let got = answer(
            "prompts/get",
            json!({ "name": "brief", "arguments": { "topic": "tea" } }),
        )
        .await
        .unwrap();
        let message =
            json!({ "role": "user", "content": { "type": "text", "text": "Summarize tea for a" } });
        assert_eq!(
            got,
            json!({ "description": "Asks for a summary", "messages": [message] })
        );
        for (uri, expect) in [
            (
                "note://all",
                json!({ "uri": "note://all", "mimeType": "text/plain", "text": "every note" }),
            ),
            (
                "note://mon/tea.md",
                json!({ "uri": "note://mon/tea.md", "mimeType": "text/markdown",
                        "text": "{\"day\":\"mon\",\"name\":\"tea\"}" }),
            ),
        ] {
            let read = answer("resources/read", json!({ "uri": uri }))
                .await
                .unwrap();
            assert_eq!(read, json!({ "contents": [expect] }));
        }
        for (method, params, code) in [
            ("prompts/get", json!({ "name": "none" }), -32602),
            ("prompts/get", json!({ "name": "brief" }), -32602),
            (
                "resources/read",
                json!({ "uri": "note://mon/absent.md" }),
                -32002,
            ),
            (
                "resources/read",
                json!({ "uri": "note://mon/a/b.md" }),
                -32002,
            ),
            ("resources/read", json!({ "uri": "note:///tea.md" }), -32002),
            (
                "resources/read",
                json!({ "uri": "note://mon/tea.md.exe" }),
                -32002,
            ),
        ] {
            let (found, why) = answer(method, params.clone()).await.unwrap_err();
            assert_eq!(found, code, "{method} {params}: {why}");
        }
    }

    #[tokio::test]
    async fn a_tool_learns_its_caller() {
        let answer = answer("tools/call", json!({ "name": "who" }))
            .await
            .unwrap();
        assert_eq!(answer["content"][0]["text"], "a");
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
            assert_eq!(
                serde_json::from_str::<Value>(answer.get()).unwrap(),
                expect,
                "{method}"
            );
        }
    }

    #[tokio::test]
    async fn unknown_tools_and_methods_are_errors() {
        for (method, params, code) in [
            ("tools/call", json!({ "name": "none" }), -32602),
            ("logging/setLevel", json!({}), -32601),
        ] {
            assert_eq!(
                served()
                    .answer(request(method, &params))
                    .await
                    .unwrap_err()
                    .code,
                code
            );
        }
    }

    #[tokio::test]
    async fn a_later_tool_replaces_one_of_the_same_name() {
        let list = served()
            .answer(request("tools/list", &json!({})))
            .await
            .unwrap();
        let list: Value = serde_json::from_str(list.get()).unwrap();
        assert_eq!(list["tools"].as_array().unwrap().len(), 3);
        assert_eq!(list["tools"][0]["description"], "Says it");
    }
}
