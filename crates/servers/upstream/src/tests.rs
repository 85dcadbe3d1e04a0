//! Supervision of a real child process (`tests/echo.py`).

pub(crate) mod accounts;
mod demand;
mod faults;
mod over_http;
mod sessions;
mod subscriptions;

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use model::{
    Answer, Capabilities, Form, LinkId, Notice, Outcome, ParticipantId, Payload, Refusal,
    RefusalCode,
};
use platform::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use wire::mcp::{Era, Params, relay};
use wire::rpc::{Id, Message};

use super::*;
use crate::config::{
    EraChoice, IDLE_STOP, Placement, SecretText, ServerConfig, ServerLimits, SessionSharing, Start,
    StdioConfig, Timeouts, Transport,
};

/// One event of a call.
#[derive(Debug)]
enum CallEvent {
    Notice(String, Value),
    Question(Question, Value),
    Done(Result<Value, Refusal>),
    Deferred,
}

struct Recorder(mpsc::UnboundedSender<CallEvent>);

impl CallEvents for Recorder {
    fn notice(&self, notice: Notice) {
        let frame = serde_json::from_slice(&notice.payload.bytes).unwrap();
        let _ = self
            .0
            .send(CallEvent::Notice(notice.method.as_str().to_owned(), frame));
    }

    fn question(&self, question: Question) {
        let frame = serde_json::from_slice(&question.request().payload.bytes).unwrap();
        let _ = self.0.send(CallEvent::Question(question, frame));
    }

    fn deferred(&self) {
        let _ = self.0.send(CallEvent::Deferred);
    }

    fn done(&self, end: Result<Answer, Refusal>) {
        let encoded = |answer: Answer| {
            let form = answer.payload.form;
            relay::encode_answer(&answer, "tools/call", form, &Id::string("a-1"), &|_| None).frame
        };
        let end = end.map(|answer| serde_json::from_slice(&encoded(answer)).unwrap());
        let _ = self.0.send(CallEvent::Done(end));
    }
}

/// The events of sessions, the changes of availability, and the links that have left.
#[derive(Default)]
struct SessionLog(
    Mutex<Vec<String>>,
    Mutex<Vec<(String, bool)>>,
    Mutex<Vec<LinkId>>,
);

impl SessionEvents for SessionLog {
    fn event(&self, _: &Arc<Session>, event: SessionEvent<'_>) {
        self.0.lock().push(match event {
            SessionEvent::Notice(notice) => notice.method.as_str().to_owned(),
            SessionEvent::Question(question) => {
                format!("question {}", question.request().method.as_str())
            }
            SessionEvent::Withdrawn(id) => {
                format!("withdrawn {}", String::from_utf8_lossy(id.raw()))
            }
            SessionEvent::Changed(_) => "changed".to_owned(),
            SessionEvent::Ended => "ended".to_owned(),
            SessionEvent::State => return,
        });
    }

    fn judged_again(&self, _: &str) {
        self.0.lock().push("judged again".to_owned());
    }

    fn is_here(&self, link: LinkId) -> bool {
        !self.2.lock().contains(&link)
    }

    fn available(&self, server: &str, runs: bool) {
        self.1.lock().push((server.to_owned(), runs));
    }
}

pub(crate) struct Fixture {
    pub(crate) upstream: Arc<Upstream>,
    log: Arc<SessionLog>,
}

impl Fixture {
    /// How many processes have started, as far as they have said so.
    fn starts(&self) -> usize {
        let lines = self.upstream.stderr().after(0).0;
        lines
            .iter()
            .filter(|line| &*line.text == "echo server starts")
            .count()
    }
}

pub(crate) fn config(args: &[&str]) -> ServerConfig {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/echo.py");
    let mut all = vec![SecretText::new(script.to_str().unwrap())];
    all.extend(args.iter().map(|arg| SecretText::new(*arg)));
    ServerConfig {
        name: ParticipantId::new("echo").unwrap(),
        transport: Transport::Stdio(StdioConfig {
            command: "python3".to_owned(),
            args: all,
            env: vec![("OWN".to_owned(), SecretText::new("yes"))],
            cwd: None,
            confinement: Default::default(),
        }),
        prefix: "echo".into(),
        era: EraChoice::Auto,
        sessions: SessionSharing::Auto,
        placement: Placement::default(),
        timeouts: Timeouts {
            start: Duration::from_secs(20),
            ..Timeouts::default()
        },
        capabilities: Arc::new(Capabilities::upstream()),
        enabled: true,
        validate: false,
        pins: Default::default(),
        start: Start::Always,
        idle_stop: IDLE_STOP,
        curation: None,
    }
}

fn start_with(config: ServerConfig, edit: impl FnOnce(&mut UpstreamSpec)) -> Fixture {
    start_for(config, None, edit)
}

pub(crate) fn start_for(
    config: ServerConfig,
    accounts: Option<Arc<dyn ::client::Accounts>>,
    edit: impl FnOnce(&mut UpstreamSpec),
) -> Fixture {
    start_in(config, edit, |environment| environment.accounts = accounts)
}

fn start_in(
    config: ServerConfig,
    edit: impl FnOnce(&mut UpstreamSpec),
    place: impl FnOnce(&mut Environment),
) -> Fixture {
    let log = Arc::new(SessionLog::default());
    let mut spec = UpstreamSpec {
        config,
        limits: ServerLimits::default(),
    };
    spec.limits.probe = Duration::from_secs(2);
    edit(&mut spec);
    let mut environment = environment(Arc::clone(&log) as Arc<dyn SessionEvents>);
    place(&mut environment);
    Fixture {
        upstream: Upstream::start(spec, environment),
        log,
    }
}

/// The services of a gateway that has nothing else.
fn environment(events: Arc<dyn SessionEvents>) -> Environment {
    Environment {
        accounts: None,
        guard: None,
        identity: Bytes::from_static(br#"{"name":"portmoot","version":"0"}"#),
        instance: Arc::from("one"),
        events,
        dial_in: None,
        numbers: Arc::default(),
        stderr: Arc::default(),
        resolve: None,
        fields: Arc::default(),
        pins: None,
        starts: Arc::default(),
        kept: Arc::default(),
    }
}

/// A session that has yet to open, at a server that another part of the gateway reaches.
pub(crate) fn bare_session(key: SessionKey) -> Arc<Session> {
    let config = ServerConfig {
        transport: Transport::Participant,
        ..config(&[])
    };
    bare_session_at(config, key)
}

/// A shared session that has yet to open, at a server that is a process.
pub(crate) fn bare_child_session() -> Arc<Session> {
    bare_session_at(config(&[]), SessionKey::Shared)
}

fn bare_session_at(config: ServerConfig, key: SessionKey) -> Arc<Session> {
    let spec = UpstreamSpec {
        config,
        limits: ServerLimits::default(),
    };
    Session::new(session::SessionSetup {
        spec: Arc::new(spec),
        key,
        owner: None,
        environment: environment(Arc::<SessionLog>::default()),
        interest: Arc::default(),
        http_sse: false,
        proto_fallback: false,
        single_call: false,
        calls: platform::Shares::new(100, 100),
        measured: Arc::default(),
    })
}

fn start(args: &[&str]) -> Fixture {
    start_with(config(args), |_| {})
}

fn client(capabilities: &'static str) -> ClientProfile {
    ClientProfile {
        capabilities: Bytes::from_static(capabilities.as_bytes()),
        client_info: None,
        version: wire::mcp::Version::V2025_11_25,
    }
}

async fn session(
    fixture: &Fixture,
    link: u64,
    client: &ClientProfile,
    era: Era,
) -> Result<Arc<Session>, Refusal> {
    let participant = &ParticipantId::new("scout").unwrap();
    fixture
        .upstream
        .session(&Caller {
            link: LinkId(link),
            participant,
            account: "scout",
            form: era,
            client,
            token: None,
        })
        .await
}

async fn shared(fixture: &Fixture, era: Era) -> Arc<Session> {
    session(fixture, 1, &client("{}"), era).await.unwrap()
}

fn resource(uri: &str) -> Subscription {
    Subscription::Resource(uri.to_owned())
}

fn accepted(body: &'static str) -> Answer {
    Answer {
        outcome: Outcome::Ok,
        payload: Payload::body(Form::Legacy, body),
    }
}

fn modern_meta() -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}})
}

/// Calls a tool, with strings as id and progress token.
fn try_call(
    session: &Session,
    tool: &str,
    arguments: &Value,
) -> Result<(CallNumber, mpsc::UnboundedReceiver<CallEvent>), Refusal> {
    let params = json!({"name": "public", "arguments": arguments});
    try_request(session, "tools/call", params, Some(tool))
}

/// Sends a request, with strings as id and progress token.
fn try_request(
    session: &Session,
    method: &str,
    mut params: Value,
    own: Option<&str>,
) -> Result<(CallNumber, mpsc::UnboundedReceiver<CallEvent>), Refusal> {
    let mut meta = if session.era() == Era::Modern {
        modern_meta()
    } else {
        json!({})
    };
    meta["progressToken"] = json!("mine");
    params["_meta"] = meta;
    let frame = json!({"jsonrpc": "2.0", "id": "a-1", "method": method, "params": params});
    let message = Message::read(Bytes::from(frame.to_string())).unwrap();
    let request = relay::decode_request(&Params::read(&message).unwrap(), session.era());
    let (sender, events) = mpsc::unbounded_channel();
    static NUMBERS: LazyLock<RequestNumbers> =
        LazyLock::new(|| session_api::RequestNumbers(AtomicU64::new(1_000_000)));
    let number = CallNumber(NUMBERS.next());
    let outgoing = Outgoing {
        request: &request,
        number,
        own,
        related_task: None,
        tasks: false,
        trace: None,
        client_info: None,
        capabilities: b"{}",
        log_level: None,
        from: "ann",
        account: "ann",
    };
    session
        .call(outgoing, Arc::new(Recorder(sender)))
        .map(|()| (number, events))
}

fn call(session: &Session, tool: &str, arguments: &Value) -> mpsc::UnboundedReceiver<CallEvent> {
    try_call(session, tool, arguments).unwrap().1
}

async fn next(events: &mut mpsc::UnboundedReceiver<CallEvent>) -> CallEvent {
    tokio::time::timeout(Duration::from_secs(20), events.recv())
        .await
        .expect("no event")
        .expect("the session dropped its receiver")
}

async fn done(events: &mut mpsc::UnboundedReceiver<CallEvent>) -> Result<Value, Refusal> {
    loop {
        if let CallEvent::Done(end) = next(events).await {
            return end;
        }
    }
}

fn text_of(answer: &Value) -> Value {
    serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap()
}

async fn report(session: &Session) -> Value {
    text_of(
        &done(&mut call(session, "report", &json!({})))
            .await
            .unwrap(),
    )
}

pub(crate) async fn until(what: &str, mut check: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(20);
    while !check() {
        assert!(Instant::now() < limit, "timed out: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn alive(pid: u64) -> bool {
    // A zombie has no command line.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

#[tokio::test]
async fn a_legacy_server_is_detected_listed_and_called() {
    let fixture = start(&["legacy"]);
    let session = shared(&fixture, Era::Modern).await;
    assert_eq!(
        (session.era(), session.key()),
        (Era::Legacy, &SessionKey::Shared)
    );
    let manifest = session.manifest();
    assert_eq!(manifest.tools.items.len(), 12);
    assert_eq!(manifest.quarantined[0].name, "broken");
    assert_eq!(manifest.resources.items[0].key, "test://a");
    let answer = done(&mut call(
        &session,
        "echo",
        &json!({"n": 1.50, "u": "\u{e9}"}),
    ))
    .await
    .unwrap();
    assert_eq!(answer["id"], "a-1");
    assert_eq!(
        answer["result"]["x-number"].to_string(),
        "12345678901234567890"
    );
    assert_eq!(text_of(&answer), json!({"n": 1.5, "u": "é"}));
    let report = report(&session).await;
    assert_eq!(report["inits"], 1);
    let env = report["env"].as_object().unwrap();
    assert!(env.contains_key("PATH") && env["OWN"] == "yes");
    assert!(
        !env.keys()
            .any(|key| key.starts_with("CARGO") || key == "USER"),
        "{env:?}"
    );
    let status = fixture.upstream.status();
    assert_eq!(
        (status.state, status.eras),
        (ServerState::Ready, vec![Era::Legacy])
    );
    fixture.upstream.close().await;
    until("the child has ended", || {
        !alive(report["pid"].as_u64().unwrap())
    })
    .await;
    assert_eq!(fixture.upstream.status().state, ServerState::Down);
}

#[tokio::test]
async fn a_server_without_an_answer_to_the_probe_is_legacy() {
    let fixture = start_with(config(&["legacy", "silent-probe"]), |spec| {
        spec.limits.probe = Duration::from_millis(300);
    });
    let session = shared(&fixture, Era::Legacy).await;
    assert_eq!(session.era(), Era::Legacy);
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_modern_server_that_starts_slower_than_the_probe_is_modern() {
    let fixture = start_with(config(&["modern", "slow-start", "0.6"]), |spec| {
        spec.limits.probe = Duration::from_millis(100);
    });
    let session = shared(&fixture, Era::Legacy).await;
    assert_eq!(session.era(), Era::Modern);
    let answer = done(&mut call(&session, "echo", &json!({}))).await.unwrap();
    assert_eq!(answer["result"]["resultType"], "complete");
    fixture.upstream.close().await;
}

#[tokio::test]
async fn progress_carries_the_callers_token_and_extends_the_deadline() {
    let mut config = config(&["legacy"]);
    config
        .timeouts
        .tools
        .insert("progress".to_owned(), Duration::from_millis(900));
    let fixture = start_with(config, |_| {});
    let session = shared(&fixture, Era::Legacy).await;
    let mut events = call(&session, "progress", &json!({"steps": 5, "wait": 0.4}));
    for step in 1..=5 {
        match next(&mut events).await {
            CallEvent::Notice(method, frame) => {
                assert_eq!(method, "notifications/progress");
                assert_eq!(
                    frame["params"],
                    json!({"progressToken": "mine", "progress": step})
                );
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(done(&mut events).await.is_ok());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn questions_reach_only_the_caller_that_declared_them() {
    let fixture = start(&["legacy"]);
    let shared = shared(&fixture, Era::Legacy).await;
    let refused = text_of(&done(&mut call(&shared, "ask", &json!({}))).await.unwrap());
    assert_eq!(refused["code"], -32601);

    let own = session(&fixture, 7, &client(r#"{"elicitation":{}}"#), Era::Legacy)
        .await
        .unwrap();
    assert_eq!(
        own.key(),
        &SessionKey::Legacy {
            link: LinkId(7),
            token: None
        }
    );
    let mut events = call(&own, "ask", &json!({}));
    let question = match next(&mut events).await {
        CallEvent::Question(question, message) => {
            assert_eq!(message["method"], "elicitation/create");
            question
        }
        other => panic!("{other:?}"),
    };
    question
        .answer(&accepted(r#"{"action":"decline"}"#))
        .unwrap();
    assert_eq!(
        text_of(&done(&mut events).await.unwrap()),
        json!({"action": "decline"})
    );
    let pid = report(&own).await["pid"].as_u64().unwrap();
    assert_eq!(fixture.upstream.status().sessions, 2);
    fixture.upstream.release(LinkId(7));
    until("the caller's child has ended", || !alive(pid)).await;
    assert!(shared.is_open());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn list_changes_are_merged_and_update_the_manifest() {
    for era in ["legacy", "modern"] {
        let fixture = start(&[era]);
        let session = shared(&fixture, Era::Legacy).await;
        assert!(
            done(&mut call(&session, "change", &json!({})))
                .await
                .is_ok()
        );
        until("the new tool is listed", || {
            session
                .manifest()
                .tools
                .items
                .iter()
                .any(|tool| tool.key == "late")
        })
        .await;
        let changes = fixture
            .log
            .0
            .lock()
            .iter()
            .filter(|what| *what == "changed")
            .count();
        assert!((1..=3).contains(&changes), "{changes} changes");
        assert_eq!(fixture.upstream.manifest(), session.manifest());
        fixture.upstream.close().await;
    }
}
