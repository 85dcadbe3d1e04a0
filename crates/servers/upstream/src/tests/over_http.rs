//! Supervision of HTTP servers in this process: both eras, and the transport of 2024-11-05.

mod cases;

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use wire::mcp::Version;

use super::*;
use crate::config::HttpConfig;

pub(super) type Sender = mpsc::UnboundedSender<Bytes>;

/// A response body that the test sends piece by piece.
struct Fed(mpsc::UnboundedReceiver<Bytes>);

impl Body for Fed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0
            .poll_recv(cx)
            .map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Legacy,
    /// A legacy one that never answers the probe.
    Silent,
    /// A legacy one that refuses requests before `notifications/initialized`, for which it takes
    /// its time.
    Strict,
    Modern,
    Older,
}

pub(super) struct Server {
    kind: Kind,
    pub(super) url: String,
    session: AtomicUsize,
    /// The revision that it chooses in place of the requested one.
    revision: Mutex<Option<&'static str>>,
    inits: AtomicUsize,
    /// How often `notifications/initialized` was taken.
    ready: AtomicUsize,
    /// The name of the header in which the tool `echo` wants its argument.
    place: Mutex<&'static str>,
    pub(super) seen: Mutex<Vec<(Method, HeaderMap, Value)>>,
    pub(super) streams: Mutex<HashMap<String, Sender>>,
}

fn event(id: Option<&str>, data: &Value) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    Bytes::from(format!("{id}data: {data}\n\n"))
}

fn result(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

impl Server {
    pub(super) async fn start(kind: Kind) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Arc::new(Self {
            kind,
            url: format!("http://{}/mcp", listener.local_addr().unwrap()),
            session: AtomicUsize::new(1),
            revision: Mutex::default(),
            inits: AtomicUsize::new(0),
            ready: AtomicUsize::new(0),
            place: Mutex::new("Place"),
            seen: Mutex::default(),
            streams: Mutex::default(),
        });
        let shared = Arc::clone(&server);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let shared = Arc::clone(&shared);
                let service = service_fn(move |request| {
                    let shared = Arc::clone(&shared);
                    async move { Ok::<_, Infallible>(shared.serve(request).await) }
                });
                tokio::spawn(async move {
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        server
    }

    pub(super) fn seen(&self, method: &str) -> Vec<HeaderMap> {
        let seen = self.seen.lock();
        seen.iter()
            .filter(|(_, _, body)| body["method"] == method)
            .map(|(_, headers, _)| headers.clone())
            .collect()
    }

    fn stream(&self, key: &str) -> Sender {
        self.streams.lock().get(key).cloned().unwrap()
    }

    fn feed(&self, key: &str) -> (Sender, Response<Fed>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.streams.lock().insert(key.to_owned(), sender.clone());
        let response = Response::builder().header("content-type", "text/event-stream");
        (sender, response.body(Fed(receiver)).unwrap())
    }

    async fn serve(self: Arc<Self>, request: Request<Incoming>) -> Response<Fed> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        self.seen
            .lock()
            .push((head.method.clone(), head.headers.clone(), body.clone()));
        match (head.method.clone(), self.kind) {
            (_, Kind::Silent) if body["method"] == "server/discover" => {
                std::future::pending().await
            }
            (_, Kind::Strict) if body["method"] == "notifications/initialized" => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                self.ready.fetch_add(1, Ordering::SeqCst);
                plain(202, "", "")
            }
            (Method::POST, Kind::Strict)
                if body["method"]
                    .as_str()
                    .is_some_and(|method| method.ends_with("/list"))
                    && self.ready.load(Ordering::SeqCst) == 0 =>
            {
                plain(400, "text/plain", "not initialized")
            }
            (Method::GET, Kind::Older) => {
                let (sender, response) = self.feed("older");
                sender
                    .send(Bytes::from_static(
                        b"event: endpoint\ndata: /messages?s=1\n\n",
                    ))
                    .unwrap();
                response
            }
            (Method::POST, Kind::Older) if head.uri.path() == "/mcp" => plain(405, "", ""),
            (_, Kind::Older) => {
                if let Some(answer) = self.answer(&body) {
                    self.stream("older").send(event(None, &answer)).unwrap();
                }
                plain(202, "", "")
            }
            (Method::POST, Kind::Modern) => self.modern(&head.headers, &body),
            (_, Kind::Modern) => plain(405, "", ""),
            (_, Kind::Legacy | Kind::Silent | Kind::Strict) => {
                self.legacy(&head.method, &head.headers, &body)
            }
        }
    }

    /// The answer to a request that needs no stream.
    fn answer(&self, body: &Value) -> Option<Value> {
        let id = body.get("id")?;
        Some(result(
            id,
            &match body["method"].as_str()? {
                "initialize" => {
                    self.inits.fetch_add(1, Ordering::SeqCst);
                    let asked = body["params"]["protocolVersion"].as_str();
                    json!({"protocolVersion": self.revision.lock().or(asked),
                    "capabilities": {"tools": {"listChanged": true}, "logging": {}}, "serverInfo": {}})
                }
                "server/discover" => {
                    json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": true}},
                "ttlMs": 0, "cacheScope": "private", "resultType": "complete"})
                }
                "tools/list" => json!({"tools": [
                {"name": "echo", "inputSchema": {"type": "object", "properties":
                    {"place": {"type": "string", "x-mcp-header": *self.place.lock()}}}},
                {"name": "bad", "inputSchema": {"type": "object", "properties":
                    {"place": {"type": "number", "x-mcp-header": "Place"}}}}]}),
                _ => json!({"content": [], "echo": body["params"]}),
            },
        ))
    }

    fn legacy(&self, method: &Method, headers: &HeaderMap, body: &Value) -> Response<Fed> {
        let session = format!("s-{}", self.session.load(Ordering::SeqCst));
        let known = headers
            .get("mcp-session-id")
            .and_then(|value| value.to_str().ok())
            == Some(&session);
        match (method, body["method"].as_str()) {
            (&Method::POST, Some("server/discover")) => plain(400, "text/plain", "what?"),
            (&Method::POST, Some("initialize")) => {
                let mut response = plain(
                    200,
                    "application/json",
                    &self.answer(body).unwrap().to_string(),
                );
                response
                    .headers_mut()
                    .insert("mcp-session-id", session.parse().unwrap());
                response
            }
            _ if !known => plain(404, "", ""),
            (&Method::GET, _) if headers.contains_key("last-event-id") => {
                let (sender, response) = self.feed("resumed");
                let id = self
                    .seen
                    .lock()
                    .iter()
                    .rev()
                    .find(|(_, _, body)| body["params"]["name"] == "resume")
                    .map(|(_, _, body)| body["id"].clone())
                    .unwrap();
                sender
                    .send(event(
                        Some("e-2"),
                        &result(
                            &id,
                            &json!({"resumed": headers["last-event-id"].to_str().unwrap()}),
                        ),
                    ))
                    .unwrap();
                self.streams.lock().remove("resumed");
                response
            }
            (&Method::GET, _) => self.feed("free").1,
            (&Method::DELETE, _) => plain(204, "", ""),
            (_, None | Some("notifications/initialized" | "notifications/cancelled")) => {
                plain(202, "", "")
            }
            (_, Some("tools/call")) => self.tool(body),
            _ => plain(
                200,
                "application/json; charset=utf-8",
                &self.answer(body).unwrap().to_string(),
            ),
        }
    }

    fn modern(&self, headers: &HeaderMap, body: &Value) -> Response<Fed> {
        let method = body["method"].as_str().unwrap_or_default();
        let mirrored = headers
            .get("mcp-method")
            .and_then(|value| value.to_str().ok());
        if mirrored != Some(method) || headers.get("mcp-protocol-version").is_none() {
            return plain(
                400,
                "application/json",
                r#"{"jsonrpc":"2.0","error":{"code":-32020,"message":"headers"}}"#,
            );
        }
        match (method, body["params"]["name"].as_str()) {
            ("subscriptions/listen", _) => self.listen(body),
            ("tools/call", Some("none")) => plain(
                404,
                "application/json",
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}"#,
            ),
            ("tools/call", Some("echo"))
                if body["params"]["arguments"]["place"].is_string()
                    && !headers.contains_key(format!(
                        "mcp-param-{}",
                        self.place.lock().to_lowercase()
                    )) =>
            {
                let error = json!({"code": -32020, "message": "headers"});
                plain(
                    400,
                    "application/json",
                    &json!({"jsonrpc": "2.0", "id": body["id"], "error": error}).to_string(),
                )
            }
            ("tools/call", Some("echo")) => plain(
                200,
                "application/json",
                &self.answer(body).unwrap().to_string(),
            ),
            ("tools/call", Some(_)) => self.tool(body),
            _ => plain(
                200,
                "application/json",
                &self.answer(body).unwrap().to_string(),
            ),
        }
    }

    /// Acknowledges at once; the test sends later notifications.
    fn listen(&self, body: &Value) -> Response<Fed> {
        let wanted = &body["params"]["notifications"];
        let (sender, response) = self.feed(if wanted["resourceSubscriptions"].is_null() {
            "lists"
        } else {
            "both"
        });
        let acknowledged = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
            "_meta": {"io.modelcontextprotocol/subscriptionId": body["id"]}, "notifications": wanted}});
        sender.send(event(None, &acknowledged)).unwrap();
        response
    }

    fn tool(&self, body: &Value) -> Response<Fed> {
        let name = body["params"]["name"].as_str().unwrap_or_default();
        if name == "echo" {
            return plain(
                200,
                "application/json",
                &self.answer(body).unwrap().to_string(),
            );
        }
        let (sender, response) = self.feed(name);
        match name {
            "progress" => {
                let token = &body["params"]["_meta"]["progressToken"];
                let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": 1}});
                sender.send(event(None, &progress)).unwrap();
                sender
                    .send(event(None, &self.answer(body).unwrap()))
                    .unwrap();
                self.streams.lock().remove(name);
            }
            "ask" => {
                let ask = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {}});
                sender.send(event(None, &ask)).unwrap();
            }
            "resume" => {
                sender
                    .send(Bytes::from_static(b"id: e-1\nretry: 10\ndata:\n\n"))
                    .unwrap();
                self.streams.lock().remove(name);
            }
            "drop" => drop(self.streams.lock().remove(name)),
            _ => sender.send(Bytes::from_static(b": open\n\n")).unwrap(),
        }
        response
    }
}

fn plain(status: u16, media: &str, body: &str) -> Response<Fed> {
    let (sender, receiver) = mpsc::unbounded_channel();
    sender
        .send(Bytes::copy_from_slice(body.as_bytes()))
        .unwrap();
    Response::builder()
        .status(status)
        .header("content-type", media)
        .body(Fed(receiver))
        .unwrap()
}

fn fixture(server: &Server) -> Fixture {
    let http = HttpConfig {
        url: SecretText::new(server.url.as_str()),
        headers: vec![("Authorization".to_owned(), SecretText::new("Bearer ours"))],
        tls: tls::ClientTls::of_machine(),
    };
    start_with(
        ServerConfig {
            transport: Transport::Http(http),
            ..config(&[])
        },
        |_| {},
    )
}
