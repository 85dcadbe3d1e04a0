//! HTTP APIs as servers: a link that answers as an MCP server whose tools are the operations of an
//! OpenAPI description.
//!
//! A call becomes one request to the API's origin, with the headers, certificates and accounts of
//! the server. The description is part of the configuration, or is fetched when a session opens.

mod exact;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::openapi::{DOCUMENT_BYTES_MAX, Document, Operation, OperationAnswer, Operations, Presets};
use bytes::Bytes;
use client::{
    ApiAnswer, ApiClient, ApiRequest, Closing, LinkError, LinkInbox, LinkTransport, SendError,
    SendMeta, ServerLink,
};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, LOCATION};
use http::{HeaderMap, HeaderValue, Method};
use platform::Mutex;
use serde_json::{Map, Value, json};
use tokio::task::AbortHandle;
use url::Url;
use wire::mcp::{Params, Version};
use wire::rpc::code::INVALID_PARAMS;
use wire::rpc::{self, Id, Message, MessageKind};

use crate::config::{Description, HttpConfig, OpenApiConfig};
use crate::fault::Fault;
use crate::session::Session;
use crate::status::QuarantinedTool;

/// The longest answer of an API, in bytes.
pub const API_ANSWER_BYTES_MAX: usize = 4 << 20;
/// The length at which a page of the list of tools ends, in bytes.
const PAGE_BYTES: usize = 1 << 20;
/// Time that clients may keep the list of tools, in milliseconds.
const LIST_TTL_MS: u64 = 3_600_000;
const JSON_FIRST: HeaderValue = HeaderValue::from_static("application/json, */*;q=0.5");
/// `Accept` of the request that fetches the description itself.
const DESCRIPTION: HeaderValue =
    HeaderValue::from_static("application/json, application/yaml, */*;q=0.5");

/// A JSON-RPC error: code and message.
type RpcError = (i64, String);

/// Opens the link to an API. The operations that are no tools are noted in the session.
pub(crate) async fn open(
    session: &Session,
    config: &OpenApiConfig,
    inbox: Arc<dyn LinkInbox>,
) -> Result<ServerLink, Fault> {
    let operations = match &config.description {
        Description::File { operations, .. } => Arc::clone(operations),
        Description::Url(url) => Arc::new(fetched(session, config, url.expose()).await?),
    };
    let left_out = operations.left_out.iter().map(|one| QuarantinedTool {
        name: one.name.clone(),
        reason: one.reason.clone(),
    });
    let _ = session.left_out.set(left_out.collect());
    let spec = session.http(&config.http)?;
    let query = config
        .query
        .iter()
        .map(|(name, value)| (name.clone(), value.expose().to_owned()))
        .collect();
    let state = State {
        server: session.upstream().to_string(),
        inbox,
        operations,
        client: ApiClient::new(&spec)?,
        accept: spec.headers.get(ACCEPT).cloned().unwrap_or(JSON_FIRST),
        query,
        calls_max: spec.limits.requests_max,
        calls: Mutex::default(),
        is_refused: AtomicBool::new(false),
    };
    Ok(ServerLink::custom(Arc::new(OpenApiLink(Arc::new(state)))))
}

/// The names that the configuration of a server gives to every request.
#[must_use]
pub fn configured(http: &HttpConfig, query: &[(String, crate::config::SecretText)]) -> Presets {
    Presets {
        headers: http.headers.iter().map(|(name, _)| name.clone()).collect(),
        query: query.iter().map(|(name, _)| name.clone()).collect(),
    }
}

/// Fetches a description, and reads its operations.
async fn fetched(
    session: &Session,
    config: &OpenApiConfig,
    url: &str,
) -> Result<Operations, Fault> {
    let from =
        Url::parse(url).map_err(|_| unusable("the URL of its description cannot be read"))?;
    let base = Url::parse(config.http.url.expose());
    let base = base.map_err(|_| unusable("its URL cannot be read"))?;
    let is_same_origin = from.origin() == base.origin();
    let text = fetched_text(session, config, url, &from, is_same_origin).await?;
    let presets = configured(&config.http, &config.query);
    let is_base_configured = config.is_base;
    // Large ones take a while to read.
    let reading = tokio::task::spawn_blocking(move || {
        let document = Document::read(&text).map_err(|why| unusable(&why.to_string()))?;
        if is_base_configured {
            return Ok(document.operations(&base, &presets));
        }
        let Some(base) = document.base(Some(&from)) else {
            return Err(unusable(NO_SERVER));
        };
        // A description does not choose who gets credentials.
        if base.origin() != from.origin() {
            return Err(unusable(OTHER_ORIGIN));
        }
        Ok(document.operations(&base, &presets))
    });
    match reading.await {
        Ok(read) => read,
        Err(_) => Err(unusable("its description cannot be read")),
    }
}

/// The text of a description. Headers, parameters, the certificate and accounts of the server go
/// with the request only if it is on the server's origin: else another site would get them.
async fn fetched_text(
    session: &Session,
    config: &OpenApiConfig,
    url: &str,
    from: &Url,
    is_same_origin: bool,
) -> Result<Bytes, Fault> {
    let mut http = HttpConfig {
        url: crate::config::SecretText::new(url),
        ..config.http.clone()
    };
    if !is_same_origin {
        http.headers.clear();
        http.tls = http.tls.without_identity();
    }
    let mut spec = session.http(&http)?;
    if !is_same_origin {
        spec.authorize = None;
    }
    let target = match from.query() {
        Some(query) => format!("{}?{query}", from.path()),
        None => from.path().to_owned(),
    };
    let mut request = ::openapi::OperationRequest {
        method: "GET",
        target,
        headers: Vec::new(),
        body: None,
    };
    if is_same_origin {
        for (name, value) in &config.query {
            // What the description's own URL says counts.
            if from.query_pairs().all(|(written, _)| written != *name) {
                request.add_query(name, value.expose());
            }
        }
    }
    let request = ApiRequest {
        method: Method::GET,
        target: request.target,
        headers: HeaderMap::from_iter([(ACCEPT, DESCRIPTION)]),
        body: Bytes::new(),
    };
    let client = ApiClient::new(&spec)?;
    let answer = match client.ask(&request, DOCUMENT_BYTES_MAX).await {
        Err(LinkError::TooLarge) => {
            let why = ::openapi::DescriptionError::TooLarge.to_string();
            return Err(unusable(&why));
        }
        answer => answer?,
    };
    if !answer.status.is_success() {
        return Err(unusable(&format!(
            "its description was answered with HTTP status {}",
            answer.status.as_u16()
        )));
    }
    Ok(answer.body)
}

fn unusable(why: &str) -> Fault {
    Fault::Unusable(why.to_owned())
}

/// Why a fetched description does not say where its API is. Operators read it; it names no server.
const OTHER_ORIGIN: &str =
    "its description is at another origin than its API: set `url` to the API's";

/// Why a description does not say where its API is.
pub const NO_SERVER: &str =
    "its description names no server with an http or https URL: set `url` to the API's";

/// State that the link and its calls share.
struct State {
    /// The name of the server, for the log.
    server: String,
    inbox: Arc<dyn LinkInbox>,
    operations: Arc<Operations>,
    client: ApiClient,
    accept: HeaderValue,
    /// Parameters of the query of every request.
    query: Vec<(String, String)>,
    calls_max: usize,
    /// The tasks of open calls, by request.
    calls: Mutex<HashMap<u64, AbortHandle>>,
    /// Whether the API has refused the credentials of the gateway, which is logged once.
    is_refused: AtomicBool,
}

/// A call of a tool that there is.
struct Call {
    tool: String,
    arguments: Map<String, Value>,
}

/// The link to an API.
struct OpenApiLink(Arc<State>);

impl LinkTransport for OpenApiLink {
    fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), SendError> {
        let state = &self.0;
        // What cannot be read was never sent by a session.
        let Ok(message) = Message::read(frame) else {
            return Ok(());
        };
        // Notifications need no answer.
        if message.shape() != MessageKind::Request {
            return Ok(());
        }
        let (Some(id), Some(number)) = (message.id(), meta.request) else {
            return Ok(());
        };
        let params = Params::read(&message);
        let is_modern = params.as_ref().is_ok_and(|params| params.is_modern());
        let answer = if message.method() == "tools/call" {
            let call = match &params {
                Ok(params) => state.read_call(params),
                Err(malformed) => Err((INVALID_PARAMS, malformed.to_string())),
            };
            match call {
                Ok(call) => return state.begin(call, id.clone(), number, is_modern),
                Err(error) => Err(error),
            }
        } else {
            value_of(message.params())
                .and_then(|params| state.answer(message.method(), &params, is_modern))
        };
        let answer = match answer {
            Ok(result) => rpc::result(id, &result),
            Err((code, why)) => rpc::error(Some(id), code, &why, None),
        };
        state.inbox.frame(answer, Some(number));
        Ok(())
    }

    fn cancel(&self, request: u64) {
        if let Some(call) = self.0.calls.lock().remove(&request) {
            call.abort();
        }
    }

    fn keeps_state(&self) -> bool {
        false
    }

    fn has_request_streams(&self) -> bool {
        true
    }

    fn is_void(&self) -> bool {
        self.0.client.is_void()
    }

    fn close(&self) -> Closing<'_> {
        self.0.end();
        Box::pin(async {})
    }
}

impl Drop for OpenApiLink {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl State {
    /// Ends all calls.
    fn end(&self) {
        for (_, call) in self.calls.lock().drain() {
            call.abort();
        }
    }

    /// Begins a call: its task sends the answer.
    fn begin(
        self: &Arc<Self>,
        call: Call,
        id: Id,
        number: u64,
        is_modern: bool,
    ) -> Result<(), SendError> {
        // Locked until the call is entered: its task may end at once.
        let mut calls = self.calls.lock();
        if calls.len() >= self.calls_max {
            return Err(SendError::Busy);
        }
        let state = Arc::clone(self);
        let task = tokio::spawn(async move {
            let outcome = state.call(&call).await;
            state.calls.lock().remove(&number);
            match outcome {
                Ok(result) => {
                    let answer = rpc::result(&id, &finished(result, is_modern));
                    state.inbox.frame(answer, Some(number));
                }
                Err(failure) => state.inbox.failed(number, failure),
            }
        });
        calls.insert(number, task.abort_handle());
        Ok(())
    }

    /// The call that the params of a request ask for.
    fn read_call(&self, params: &Params<'_>) -> Result<Call, RpcError> {
        let name = params.get("name").and_then(|name| name.text());
        let Some(tool) = name.and_then(|name| self.operations.get(&name)) else {
            return Err((INVALID_PARAMS, "unknown tool".to_owned()));
        };
        let arguments = match params.get("arguments") {
            None => Value::Null,
            Some(arguments) => exact::read(arguments.raw)
                .map_err(|why| (INVALID_PARAMS, format!("wrong arguments: {why}")))?,
        };
        let arguments = match arguments {
            Value::Null => Map::new(),
            Value::Object(arguments) => arguments,
            _ => return Err((INVALID_PARAMS, "`arguments` must be an object".to_owned())),
        };
        Ok(Call {
            tool: tool.name.clone(),
            arguments,
        })
    }

    /// The result of every request but calls, as JSON.
    fn answer(&self, method: &str, params: &Value, modern: bool) -> Result<Vec<u8>, RpcError> {
        let result = match method {
            "initialize" if !modern => self.initialize(params),
            "server/discover" if modern => discover(),
            "ping" if !modern => json!({}),
            "tools/list" => return self.page(params, modern),
            _ => return Err((-32601, format!("method not found: {method}"))),
        };
        let mut result = result;
        if modern && let Some(members) = result.as_object_mut() {
            members.insert("ttlMs".into(), LIST_TTL_MS.into());
            members.insert("cacheScope".into(), "public".into());
            members.insert(
                "_meta".into(),
                json!({ "io.modelcontextprotocol/serverInfo": self.info() }),
            );
        }
        Ok(finished(result, modern))
    }

    /// The implementation as the handshake names it: a name and a version are never empty.
    fn info(&self) -> Value {
        let Operations { title, version, .. } = &*self.operations;
        let name = if title.is_empty() { "openapi" } else { title };
        let version = if version.is_empty() { "0" } else { version };
        json!({ "name": name, "version": version })
    }

    fn initialize(&self, params: &Value) -> Value {
        let asked = params
            .get("protocolVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let version = Version::answer_to(asked).as_str();
        json!({ "protocolVersion": version, "capabilities": { "tools": {} }, "serverInfo": self.info() })
    }

    /// A page of tools. Its cursor is the place of the first one.
    fn page(&self, params: &Value, modern: bool) -> Result<Vec<u8>, RpcError> {
        let cursor = params.get("cursor").and_then(Value::as_str);
        let first = match cursor.map(str::parse::<usize>) {
            None => 0,
            Some(Ok(place)) => place,
            Some(Err(_)) => return Err((INVALID_PARAMS, "unknown cursor".to_owned())),
        };
        let Some(rest) = self.operations.operations.get(first..) else {
            return Err((INVALID_PARAMS, "unknown cursor".to_owned()));
        };
        let mut tools = String::new();
        let mut count = 0;
        for operation in rest {
            // The first one may be longer than a page: else the list would not go on.
            if count > 0 && tools.len() + operation.definition.len() > PAGE_BYTES {
                break;
            }
            if count > 0 {
                tools.push(',');
            }
            tools.push_str(&operation.definition);
            count += 1;
        }
        let mut page = format!(r#"{{"tools":[{tools}]"#);
        if count < rest.len() {
            page.push_str(&format!(r#","nextCursor":"{}""#, first + count));
        }
        if modern {
            let meta = json!({ "io.modelcontextprotocol/serverInfo": self.info() });
            page.push_str(&format!(
                r#","resultType":"complete","ttlMs":{LIST_TTL_MS},"cacheScope":"public","_meta":{meta}"#
            ));
        }
        page.push('}');
        Ok(page.into_bytes())
    }

    /// Makes the request of a call. What is wrong with its arguments, and what the API answers, is
    /// a result.
    async fn call(&self, call: &Call) -> Result<Value, LinkError> {
        let Some(operation) = self.operations.get(&call.tool) else {
            return Ok(failed("unknown tool"));
        };
        let request = match operation.request(&call.arguments) {
            Ok(request) => request,
            Err(why) => return Ok(failed(&format!("wrong arguments: {why}"))),
        };
        let Some(request) = self.request(request) else {
            return Ok(failed("the request cannot be written"));
        };
        match self.client.ask(&request, API_ANSWER_BYTES_MAX).await {
            Ok(answer) => Ok(self.result(operation, &answer)),
            Err(LinkError::TooLarge) => Ok(failed(&format!(
                "the API's answer is longer than {API_ANSWER_BYTES_MAX} bytes: ask for less"
            ))),
            Err(failure) => Err(failure),
        }
    }

    /// A request with what the configuration adds to every one; `None` if a header cannot be
    /// written.
    fn request(&self, mut request: ::openapi::OperationRequest) -> Option<ApiRequest> {
        for (name, value) in &self.query {
            request.add_query(name, value);
        }
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, self.accept.clone());
        for (name, value) in &request.headers {
            headers.insert(
                HeaderName::try_from(name.as_str()).ok()?,
                HeaderValue::from_str(value).ok()?,
            );
        }
        let mut body = Bytes::new();
        if let Some((media, bytes)) = request.body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_str(&media).ok()?);
            body = bytes.into();
        }
        let method = Method::from_bytes(request.method.as_bytes()).ok()?;
        Some(ApiRequest {
            method,
            target: request.target,
            headers,
            body,
        })
    }

    fn result(&self, operation: &Operation, answer: &ApiAnswer) -> Value {
        let answer = OperationAnswer {
            status: answer.status.as_u16(),
            media: text_of(&answer.headers, &CONTENT_TYPE),
            location: text_of(&answer.headers, &LOCATION),
            body: &answer.body,
        };
        if answer.refuses_credentials() {
            self.note_refusal(answer.status);
        }
        answer.result(operation)
    }

    /// Logs once that the API refused the gateway's credentials, and which ones it asks for.
    fn note_refusal(&self, status: u16) {
        if self.is_refused.swap(true, Ordering::Relaxed) {
            return;
        }
        let credentials = self.operations.credentials.iter();
        let advice: Vec<String> = credentials.map(|one| one.advice()).collect();
        tracing::warn!(
            server = self.server,
            status,
            asks_for = advice.join(", or "),
            "the API refused the gateway's credentials; later refusals are not logged until it connects anew"
        );
    }
}

/// A header as a text; `None` if there is none, or one that is no text.
fn text_of<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Params of a request as a value; `null` if it has none.
fn value_of(params: Option<&[u8]>) -> Result<Value, RpcError> {
    let read = params.map_or(Ok(Value::Null), serde_json::from_slice);
    read.map_err(|error| {
        (
            INVALID_PARAMS,
            format!("its params cannot be read: {error}"),
        )
    })
}

fn discover() -> Value {
    let versions: Vec<&str> = Version::ALL
        .iter()
        .map(|version| version.as_str())
        .collect();
    json!({ "supportedVersions": versions, "capabilities": { "tools": {} } })
}

/// The result of a call that made no request, or got no answer that can be shown.
fn failed(why: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": why }], "isError": true })
}

/// A result as it is sent in its era.
fn finished(mut result: Value, modern: bool) -> Vec<u8> {
    if modern && let Some(members) = result.as_object_mut() {
        members.insert("resultType".into(), "complete".into());
    }
    result.to_string().into_bytes()
}
