//! Supervision of HTTP servers in this process: both eras, and the transport of 2024-11-05.

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

type Sender = mpsc::UnboundedSender<Bytes>;

/// A response body that the test sends piece by piece.
struct Fed(mpsc::UnboundedReceiver<Bytes>);

impl Body for Fed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Legacy,
    /// A legacy one that never answers the probe.
    Silent,
    /// A legacy one that refuses requests before `notifications/initialized`, for which it takes its time.
    Strict,
    Modern,
    Older,
}

struct Server {
    kind: Kind,
    url: String,
    session: AtomicUsize,
    /// The revision that it chooses in place of the requested one.
    revision: Mutex<Option<&'static str>>,
    inits: AtomicUsize,
    /// How often `notifications/initialized` was taken.
    ready: AtomicUsize,
    /// The name of the header in which the tool `echo` wants its argument.
    place: Mutex<&'static str>,
    seen: Mutex<Vec<(Method, HeaderMap, Value)>>,
    streams: Mutex<HashMap<String, Sender>>,
}

fn event(id: Option<&str>, data: &Value) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    Bytes::from(format!("{id}data: {data}\n\n"))
}

fn result(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

impl Server {
    async fn start(kind: Kind) -> Arc<Self> {
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

    fn seen(&self, method: &str) -> Vec<HeaderMap> {
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
        self.seen.lock().push((head.method.clone(), head.headers.clone(), body.clone()));
        match (head.method.clone(), self.kind) {
            (_, Kind::Silent) if body["method"] == "server/discover" => std::future::pending().await,
            (_, Kind::Strict) if body["method"] == "notifications/initialized" => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                self.ready.fetch_add(1, Ordering::SeqCst);
                plain(202, "", "")
            }
            (Method::POST, Kind::Strict)
                if body["method"].as_str().is_some_and(|method| method.ends_with("/list"))
                    && self.ready.load(Ordering::SeqCst) == 0 =>
            {
                plain(400, "text/plain", "not initialized")
            }
            (Method::GET, Kind::Older) => {
                let (sender, response) = self.feed("older");
                sender.send(Bytes::from_static(b"event: endpoint\ndata: /messages?s=1\n\n")).unwrap();
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
        let known = headers.get("mcp-session-id").and_then(|value| value.to_str().ok()) == Some(&session);
        match (method, body["method"].as_str()) {
            (&Method::POST, Some("server/discover")) => plain(400, "text/plain", "what?"),
            (&Method::POST, Some("initialize")) => {
                let mut response = plain(200, "application/json", &self.answer(body).unwrap().to_string());
                response.headers_mut().insert("mcp-session-id", session.parse().unwrap());
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
                        &result(&id, &json!({"resumed": headers["last-event-id"].to_str().unwrap()})),
                    ))
                    .unwrap();
                self.streams.lock().remove("resumed");
                response
            }
            (&Method::GET, _) => self.feed("free").1,
            (&Method::DELETE, _) => plain(204, "", ""),
            (_, None | Some("notifications/initialized" | "notifications/cancelled")) => plain(202, "", ""),
            (_, Some("tools/call")) => self.tool(body),
            _ => plain(200, "application/json; charset=utf-8", &self.answer(body).unwrap().to_string()),
        }
    }

    fn modern(&self, headers: &HeaderMap, body: &Value) -> Response<Fed> {
        let method = body["method"].as_str().unwrap_or_default();
        let mirrored = headers.get("mcp-method").and_then(|value| value.to_str().ok());
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
                    && !headers.contains_key(format!("mcp-param-{}", self.place.lock().to_lowercase())) =>
            {
                let error = json!({"code": -32020, "message": "headers"});
                plain(
                    400,
                    "application/json",
                    &json!({"jsonrpc": "2.0", "id": body["id"], "error": error}).to_string(),
                )
            }
            ("tools/call", Some("echo")) => {
                plain(200, "application/json", &self.answer(body).unwrap().to_string())
            }
            ("tools/call", Some(_)) => self.tool(body),
            _ => plain(200, "application/json", &self.answer(body).unwrap().to_string()),
        }
    }

    /// Acknowledges at once; the test sends later notifications.
    fn listen(&self, body: &Value) -> Response<Fed> {
        let wanted = &body["params"]["notifications"];
        let (sender, response) =
            self.feed(if wanted["resourceSubscriptions"].is_null() { "lists" } else { "both" });
        let acknowledged = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
            "_meta": {"io.modelcontextprotocol/subscriptionId": body["id"]}, "notifications": wanted}});
        sender.send(event(None, &acknowledged)).unwrap();
        response
    }

    fn tool(&self, body: &Value) -> Response<Fed> {
        let name = body["params"]["name"].as_str().unwrap_or_default();
        if name == "echo" {
            return plain(200, "application/json", &self.answer(body).unwrap().to_string());
        }
        let (sender, response) = self.feed(name);
        match name {
            "progress" => {
                let token = &body["params"]["_meta"]["progressToken"];
                let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": 1}});
                sender.send(event(None, &progress)).unwrap();
                sender.send(event(None, &self.answer(body).unwrap())).unwrap();
                self.streams.lock().remove(name);
            }
            "ask" => {
                let ask = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {}});
                sender.send(event(None, &ask)).unwrap();
            }
            "resume" => {
                sender.send(Bytes::from_static(b"id: e-1\nretry: 10\ndata:\n\n")).unwrap();
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
    sender.send(Bytes::copy_from_slice(body.as_bytes())).unwrap();
    Response::builder().status(status).header("content-type", media).body(Fed(receiver)).unwrap()
}

fn fixture(server: &Server) -> Fixture {
    let http = HttpConfig {
        url: Secret::new(server.url.as_str()),
        headers: vec![("Authorization".to_owned(), Secret::new("Bearer ours"))],
    };
    start_with(ServerConfig { transport: Transport::Http(http), ..config(&[]) }, |_| {})
}

#[tokio::test]
async fn a_legacy_http_server_loses_its_session_and_no_call() {
    let server = Server::start(Kind::Legacy).await;
    let fixture = fixture(&server);
    let session = shared(&fixture, Era::Modern).await;
    assert_eq!((session.era(), server.inits.load(Ordering::SeqCst)), (Era::Legacy, 1));
    assert_eq!(session.manifest().tools.items.len(), 2);
    assert!(done(&mut call(&session, "echo", &json!({}))).await.is_ok());
    let headers = server.seen("tools/call")[0].clone();
    assert_eq!(headers["mcp-session-id"], "s-1");
    assert_eq!(headers["mcp-protocol-version"], "2025-11-25");
    assert_eq!(headers["authorization"], "Bearer ours");
    assert_eq!(headers.len(), 7, "{headers:?}");

    assert_eq!(session.version(), Version::NEWEST_LEGACY);
    server.session.store(2, Ordering::SeqCst);
    *server.revision.lock() = Some("2025-06-18");
    let mut calls: Vec<_> = (0..100).map(|_| call(&session, "echo", &json!({}))).collect();
    for events in &mut calls {
        assert_eq!(done(events).await.unwrap()["id"], "a-1");
    }
    assert_eq!(server.inits.load(Ordering::SeqCst), 2);
    assert!(session.is_open());
    // The server that was started anew has chosen another revision.
    assert_eq!(session.version(), Version::V2025_06_18);
    assert_eq!(fixture.upstream.status().version.as_deref(), Some("2025-06-18"));
    done(&mut call(&session, "echo", &json!({}))).await.unwrap();
    assert_eq!(server.seen("tools/call").last().unwrap()["mcp-protocol-version"], "2025-06-18");
    fixture.upstream.close().await;
    assert!(server.seen.lock().iter().any(|(method, ..)| *method == Method::DELETE));
}

#[tokio::test]
async fn response_streams_carry_progress_and_questions_and_resume() {
    let server = Server::start(Kind::Legacy).await;
    let fixture = fixture(&server);
    let session = session(&fixture, 7, &client(r#"{"elicitation":{}}"#), Era::Legacy).await.unwrap();

    let mut events = call(&session, "progress", &json!({}));
    match next(&mut events).await {
        CallEvent::Notice(_, frame) => assert_eq!(frame["params"]["progressToken"], "mine"),
        other => panic!("{other:?}"),
    }
    assert!(done(&mut events).await.is_ok());

    // With another call open, the question reaches the call on whose stream it came.
    let (number, mut other) = try_call(&session, "hang", &json!({})).unwrap();
    let mut events = call(&session, "ask", &json!({}));
    let CallEvent::Question(question, _) = next(&mut events).await else { panic!("no question") };
    question.answer(&accepted(r#"{"action":"accept"}"#)).unwrap();
    until("the answer has arrived", || {
        server
            .seen
            .lock()
            .iter()
            .any(|(_, _, body)| body["id"] == "q" && body["result"]["action"] == "accept")
    })
    .await;
    assert!(other.try_recv().is_err());
    session.cancel(number, "enough");
    until("the cancellation has arrived", || server.seen("notifications/cancelled").len() == 1).await;

    let answer = done(&mut call(&session, "resume", &json!({}))).await.unwrap();
    assert_eq!(answer["result"]["resumed"], "e-1");
    let refusal = done(&mut call(&session, "drop", &json!({}))).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::UpstreamFailed);
    fixture.upstream.close().await;
}

#[tokio::test]
async fn the_get_stream_announces_list_changes() {
    let server = Server::start(Kind::Legacy).await;
    let fixture = fixture(&server);
    let session = shared(&fixture, Era::Legacy).await;
    until("the stream is open", || server.streams.lock().contains_key("free")).await;
    let before = server.seen("tools/list").len();
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    server.stream("free").send(event(None, &changed)).unwrap();
    until("the list is read again", || server.seen("tools/list").len() > before).await;
    assert!(session.is_open());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_modern_http_server_gets_mirrored_headers_and_closed_streams() {
    let server = Server::start(Kind::Modern).await;
    let fixture = fixture(&server);
    let session = shared(&fixture, Era::Legacy).await;
    assert_eq!(session.era(), Era::Modern);
    let manifest = session.manifest();
    assert_eq!((manifest.tools.items.len(), manifest.quarantined[0].name.as_str()), (1, "bad"));
    assert!(done(&mut call(&session, "echo", &json!({"place": "h\u{e9}"}))).await.is_ok());
    let headers = server.seen("tools/call")[0].clone();
    assert_eq!(
        (&headers["mcp-method"], &headers["mcp-name"]),
        (&"tools/call".parse().unwrap(), &"echo".parse().unwrap())
    );
    assert_eq!(headers["mcp-param-place"], "=?base64?aMOp?=");
    assert!(!headers.contains_key("mcp-session-id"));

    let answer = done(&mut call(&session, "none", &json!({}))).await.unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("a-1"), &json!(-32601)));

    let (number, _heard) = try_call(&session, "hang", &json!({})).unwrap();
    until("the call has arrived", || server.streams.lock().contains_key("hang")).await;
    assert!(!server.stream("hang").is_closed());
    session.cancel(number, "enough");
    until("the stream is closed", || server.stream("hang").is_closed()).await;
    assert!(server.seen("notifications/cancelled").is_empty());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn notifications_on_a_replaced_listen_stream_still_arrive() {
    let server = Server::start(Kind::Modern).await;
    let fixture = fixture(&server);
    let session = shared(&fixture, Era::Modern).await;
    until("the first stream is open", || server.streams.lock().contains_key("lists")).await;
    session.subscribe(model::LinkId(7), "ann", "test://followed").await.unwrap();
    // `subscribe` returns after the server has the subscription.
    assert!(server.streams.lock().contains_key("both"));
    let before = server.seen("tools/list").len();
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    server.stream("lists").send(event(None, &changed)).unwrap();
    until("the list is read again", || server.seen("tools/list").len() > before).await;
    until("the old stream is closed", || server.stream("lists").is_closed()).await;
    fixture.upstream.close().await;
}

#[tokio::test]
async fn calls_whose_headers_are_refused_are_sent_again_with_those_of_the_new_schema() {
    let server = Server::start(Kind::Modern).await;
    let fixture = fixture(&server);
    let session = shared(&fixture, Era::Modern).await;
    let arguments = json!({"place": "here"});
    assert!(done(&mut call(&session, "echo", &arguments)).await.unwrap()["result"].is_object());
    let listed = || server.seen("tools/list").len();
    let (before, called) = (listed(), server.seen("tools/call").len());
    *server.place.lock() = "Where";
    let mut calls: Vec<_> = (0..3).map(|_| call(&session, "echo", &arguments)).collect();
    for events in &mut calls {
        let answer = done(events).await.unwrap();
        assert_eq!(answer["result"]["echo"]["arguments"], arguments, "{answer}");
    }
    assert_eq!(server.seen("tools/call").last().unwrap()["mcp-param-where"], "here");
    assert!(!server.seen("tools/call").last().unwrap().contains_key("mcp-param-place"));
    // Calls that are refused while it lists wait for the same list.
    assert!(listed() <= before + 3 && server.seen("tools/call").len() <= called + 6);
    assert!(fixture.log.0.lock().contains(&"changed".to_owned()));
    // A name that cannot be a header leaves the tool without one: the call is refused for good.
    *server.place.lock() = "no name";
    let called = server.seen("tools/call").len();
    let answer = done(&mut call(&session, "echo", &arguments)).await.unwrap();
    assert_eq!(answer["error"]["code"], -32020, "{answer}");
    assert!(server.seen("tools/call").len() <= called + 2);
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_lost_session_is_opened_again_with_all_that_it_had() {
    let server = Server::start(Kind::Legacy).await;
    let fixture = fixture(&server);
    let session = shared(&fixture, Era::Legacy).await;
    let in_session = |method: &str, number: usize| {
        let named = format!("s-{number}");
        server.seen(method).iter().filter(|headers| headers["mcp-session-id"] == *named).count()
    };
    let restored = |number: usize, subscribed: usize| {
        in_session("resources/subscribe", number) >= subscribed && in_session("logging/setLevel", number) > 0
    };
    assert!(session.want_level(LinkId(1), model::LogLevel::Debug, true));
    session.pass_level().await;
    assert_eq!(session.subscribe(LinkId(1), "ann", "test://a").await.unwrap().outcome, Outcome::Ok);
    until("the stream is open", || server.streams.lock().contains_key("free")).await;
    // A request of the session itself finds it lost.
    server.session.store(2, Ordering::SeqCst);
    assert_eq!(session.subscribe(LinkId(1), "ann", "test://b").await.unwrap().outcome, Outcome::Ok);
    until("it has all again", || restored(2, 2)).await;
    // A notification finds it lost.
    server.session.store(3, Ordering::SeqCst);
    session.notify(wire::rpc::notification("notifications/roots/list_changed", None)).unwrap();
    until("it has all again", || restored(3, 2)).await;
    // Its stream finds it lost.
    until("the stream is open", || {
        server
            .seen
            .lock()
            .iter()
            .any(|(method, headers, _)| *method == Method::GET && headers["mcp-session-id"] == "s-3")
    })
    .await;
    server.session.store(4, Ordering::SeqCst);
    server.streams.lock().remove("free");
    until("it has all again", || restored(4, 2)).await;
    assert_eq!(server.inits.load(Ordering::SeqCst), 4);
    assert!(session.is_open());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn no_request_overtakes_the_end_of_the_handshake() {
    let server = Server::start(Kind::Strict).await;
    let fixture = fixture(&server);
    let session = shared(&fixture, Era::Legacy).await;
    assert_eq!(session.manifest().tools.items.len(), 2);
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_server_of_2024_is_detected() {
    let server = Server::start(Kind::Older).await;
    let fixture = fixture(&server);
    let session = shared(&fixture, Era::Modern).await;
    assert_eq!(session.era(), Era::Legacy);
    assert!(done(&mut call(&session, "echo", &json!({}))).await.is_ok());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn an_http_server_without_an_answer_to_the_probe_is_legacy() {
    let server = Server::start(Kind::Silent).await;
    let http = HttpConfig { url: Secret::new(server.url.as_str()), headers: Vec::new() };
    let mut config = ServerConfig { transport: Transport::Http(http), ..config(&[]) };
    config.timeouts.start = Duration::from_secs(5);
    let fixture = start_with(config, |spec| spec.limits.probe = Duration::from_millis(100));
    let session = shared(&fixture, Era::Modern).await;
    assert_eq!(session.era(), Era::Legacy);
    assert!(done(&mut call(&session, "echo", &json!({}))).await.is_ok());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn an_unreachable_server_is_down_and_its_url_stays_secret() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/secret-path", listener.local_addr().unwrap());
    drop(listener);
    let http = HttpConfig { url: Secret::new(url), headers: Vec::new() };
    let fixture = start_with(ServerConfig { transport: Transport::Http(http), ..config(&[]) }, |_| {});
    let refusal = session(&fixture, 1, &client("{}"), Era::Legacy).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::UpstreamDown);
    assert!(!format!("{refusal:?}").contains("secret-path"), "{refusal:?}");
    fixture.upstream.close().await;
}
