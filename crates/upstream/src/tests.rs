//! Supervision of a real child process (`tests/echo.py`).

mod faults;
mod over_http;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use json::Splice;
use model::{Capabilities, Era, LinkId, ParticipantId, Refusal, RefusalCode};
use platform::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use wire::mcp::Params;
use wire::rpc::{Message, Shape};

use super::*;
use crate::config::{
    EraChoice, Origin, Secret, ServerConfig, ServerLimits, Sessions, StdioConfig, Timeouts, Transport,
};

/// One event of a call.
#[derive(Debug)]
enum CallEvent {
    Notice(String, Value),
    Question(QuestionId, Value),
    Done(Result<Value, Refusal>),
}

struct Recorder(mpsc::UnboundedSender<CallEvent>);

impl CallEvents for Recorder {
    fn notice(&self, method: &str, frame: Bytes) {
        let _ = self.0.send(CallEvent::Notice(method.to_owned(), serde_json::from_slice(&frame).unwrap()));
    }

    fn question(&self, question: QuestionId, message: Message) {
        let _ = self.0.send(CallEvent::Question(question, serde_json::from_slice(message.frame()).unwrap()));
    }

    fn done(&self, end: Result<Answer, Refusal>) {
        let end = end.map(|answer| serde_json::from_slice(&answer.frame(Splice::new())).unwrap());
        let _ = self.0.send(CallEvent::Done(end));
    }
}

#[derive(Default)]
struct SessionLog(Mutex<Vec<String>>);

impl SessionEvents for SessionLog {
    fn notice(&self, _: &Arc<Session>, method: &str, _: Bytes) {
        self.0.lock().push(method.to_owned());
    }

    fn question(&self, _: &Arc<Session>, _: QuestionId, message: Message) {
        self.0.lock().push(format!("question {}", message.method()));
    }

    fn changed(&self, _: &Arc<Session>, _: &[wire::mcp::ListKind]) {
        self.0.lock().push("changed".to_owned());
    }

    fn ended(&self, _: &Arc<Session>) {
        self.0.lock().push("ended".to_owned());
    }
}

struct Fixture {
    upstream: Arc<Upstream>,
    log: Arc<SessionLog>,
}

fn config(args: &[&str]) -> ServerConfig {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/echo.py");
    let mut all = vec![Secret::new(script.to_str().unwrap())];
    all.extend(args.iter().map(|arg| Secret::new(*arg)));
    ServerConfig {
        name: ParticipantId::new("echo").unwrap(),
        transport: Transport::Stdio(StdioConfig {
            command: "python3".to_owned(),
            args: all,
            env: vec![("OWN".to_owned(), Secret::new("yes"))],
            cwd: None,
        }),
        prefix: "echo".into(),
        era: EraChoice::Auto,
        sessions: Sessions::Auto,
        timeouts: Timeouts { start: Duration::from_secs(20), ..Timeouts::default() },
        capabilities: Arc::new(Capabilities::upstream()),
        enabled: true,
        origin: Origin::Named,
    }
}

fn start_with(config: ServerConfig, edit: impl FnOnce(&mut UpstreamSpec)) -> Fixture {
    let log = Arc::new(SessionLog::default());
    let mut spec = UpstreamSpec::new(config, &ServerLimits::default());
    spec.bounds.probe = Duration::from_secs(2);
    edit(&mut spec);
    let environment = Environment {
        guard: None,
        identity: Bytes::from_static(br#"{"name":"portmoot","version":"0"}"#),
        events: Arc::clone(&log) as Arc<dyn SessionEvents>,
        dial_in: None,
    };
    Fixture { upstream: Upstream::start(spec, environment), log }
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

async fn shared(fixture: &Fixture, era: Era) -> Arc<Session> {
    fixture.upstream.session(&SessionKey::Legacy(1), &client("{}"), era).await.unwrap()
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
    let mut meta = if session.era() == Era::Modern { modern_meta() } else { json!({}) };
    meta["progressToken"] = json!("mine");
    let frame = json!({"jsonrpc": "2.0", "id": "a-1", "method": "tools/call",
        "params": {"name": "public", "arguments": arguments, "_meta": meta}});
    let message = Message::read(Bytes::from(frame.to_string())).unwrap();
    let params = Params::read(&message).unwrap();
    let mut edit = params.edit();
    edit.set_target(tool);
    let (sender, events) = mpsc::unbounded_channel();
    let outgoing = Outgoing { params: &params, edit, target: Some(tool), from: "ann" };
    session.call(outgoing, Arc::new(Recorder(sender))).map(|number| (number, events))
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
    text_of(&done(&mut call(session, "report", &json!({}))).await.unwrap())
}

async fn until(what: &str, mut check: impl FnMut() -> bool) {
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
    assert_eq!((session.era(), session.key()), (Era::Legacy, &SessionKey::Shared));
    let manifest = session.manifest();
    assert_eq!(manifest.tools.items.len(), 11);
    assert_eq!(manifest.quarantined[0].name, "broken");
    assert_eq!(manifest.resources.items[0].key, "test://a");
    let answer = done(&mut call(&session, "echo", &json!({"n": 1.50, "u": "\u{e9}"}))).await.unwrap();
    assert_eq!(answer["id"], "a-1");
    assert_eq!(answer["result"]["x-number"].to_string(), "12345678901234567890");
    assert_eq!(text_of(&answer), json!({"n": 1.5, "u": "é"}));
    let report = report(&session).await;
    assert_eq!(report["inits"], 1);
    let env = report["env"].as_object().unwrap();
    assert!(env.contains_key("PATH") && env["OWN"] == "yes");
    assert!(!env.keys().any(|key| key.starts_with("CARGO") || key == "USER"), "{env:?}");
    let status = fixture.upstream.status();
    assert_eq!((status.state, status.eras), (State::Ready, vec![Era::Legacy]));
    fixture.upstream.close().await;
    until("the child has ended", || !alive(report["pid"].as_u64().unwrap())).await;
    assert_eq!(fixture.upstream.status().state, State::Down);
}

#[tokio::test]
async fn a_server_without_an_answer_to_the_probe_is_legacy() {
    let fixture = start_with(config(&["legacy", "silent-probe"]), |spec| {
        spec.bounds.probe = Duration::from_millis(300);
    });
    let session = shared(&fixture, Era::Legacy).await;
    assert_eq!(session.era(), Era::Legacy);
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_modern_server_that_starts_slower_than_the_probe_is_modern() {
    let fixture = start_with(config(&["modern", "slow-start", "0.6"]), |spec| {
        spec.bounds.probe = Duration::from_millis(100);
    });
    let session = shared(&fixture, Era::Legacy).await;
    assert_eq!(session.era(), Era::Modern);
    let answer = done(&mut call(&session, "echo", &json!({}))).await.unwrap();
    assert_eq!(answer["result"]["resultType"], "complete");
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_server_of_both_eras_has_one_process_for_each() {
    let fixture = start(&["both"]);
    let modern = shared(&fixture, Era::Modern).await;
    let legacy = shared(&fixture, Era::Legacy).await;
    assert_eq!((modern.era(), legacy.era()), (Era::Modern, Era::Legacy));
    assert_ne!(report(&modern).await["pid"], report(&legacy).await["pid"]);
    assert!(Arc::ptr_eq(&modern, &shared(&fixture, Era::Modern).await));
    assert_eq!(fixture.upstream.status().sessions, 2);
    fixture.upstream.close().await;
}

#[tokio::test]
async fn progress_carries_the_callers_token_and_extends_the_deadline() {
    let mut config = config(&["legacy"]);
    config.timeouts.tools.insert("progress".to_owned(), Duration::from_millis(900));
    let fixture = start_with(config, |_| {});
    let session = shared(&fixture, Era::Legacy).await;
    let mut events = call(&session, "progress", &json!({"steps": 5, "wait": 0.4}));
    for step in 1..=5 {
        match next(&mut events).await {
            CallEvent::Notice(method, frame) => {
                assert_eq!(method, "notifications/progress");
                assert_eq!(frame["params"], json!({"progressToken": "mine", "progress": step}));
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

    let key = SessionKey::Legacy(7);
    let own = fixture.upstream.session(&key, &client(r#"{"elicitation":{}}"#), Era::Legacy).await.unwrap();
    assert_eq!(own.key(), &key);
    let mut events = call(&own, "ask", &json!({}));
    let question = match next(&mut events).await {
        CallEvent::Question(question, message) => {
            assert_eq!(message["method"], "elicitation/create");
            question
        }
        other => panic!("{other:?}"),
    };
    let answer =
        Message::read(Bytes::from_static(br#"{"jsonrpc":"2.0","id":99,"result":{"action":"decline"}}"#));
    own.answer(question, &answer.unwrap()).unwrap();
    assert_eq!(text_of(&done(&mut events).await.unwrap()), json!({"action": "decline"}));
    assert!(
        own.answer(
            question,
            &Message::read(Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#)).unwrap()
        )
        .is_err()
    );

    let pid = report(&own).await["pid"].as_u64().unwrap();
    assert_eq!(fixture.upstream.status().sessions, 2);
    fixture.upstream.release(&key);
    until("the caller's child has ended", || !alive(pid)).await;
    assert!(shared.is_open());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn calls_of_a_modern_caller_with_questions_run_one_after_the_other() {
    let fixture = start(&["legacy"]);
    let key = SessionKey::Principal { participant: ParticipantId::new("scout").unwrap(), capabilities: 5 };
    let own = fixture.upstream.session(&key, &client(r#"{"elicitation":{}}"#), Era::Modern).await.unwrap();
    let mut first = call(&own, "ask", &json!({}));
    let mut second = call(&own, "echo", &json!({}));
    let CallEvent::Question(question, _) = next(&mut first).await else { panic!("no question") };
    assert!(second.try_recv().is_err());
    let answer = Message::read(Bytes::from_static(br#"{"jsonrpc":"2.0","id":99,"result":{}}"#)).unwrap();
    own.answer(question, &answer).unwrap();
    assert!(done(&mut first).await.is_ok());
    assert!(done(&mut second).await.is_ok());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn list_changes_are_merged_and_update_the_manifest() {
    for era in ["legacy", "modern"] {
        let fixture = start(&[era]);
        let session = shared(&fixture, Era::Legacy).await;
        assert!(done(&mut call(&session, "change", &json!({}))).await.is_ok());
        until("the new tool is listed", || {
            session.manifest().tools.items.iter().any(|tool| tool.key == "late")
        })
        .await;
        let changes = fixture.log.0.lock().iter().filter(|what| *what == "changed").count();
        assert!((1..=3).contains(&changes), "{changes} changes");
        assert_eq!(fixture.upstream.manifest(), session.manifest());
        fixture.upstream.close().await;
    }
}

#[tokio::test]
async fn subscriptions_are_counted_and_survive_a_restart() {
    let fixture = start(&["legacy"]);
    let session = shared(&fixture, Era::Legacy).await;
    for link in [1, 2] {
        assert_eq!(session.subscribe(LinkId(link), "test://a").await.unwrap().shape(), Shape::Result);
    }
    assert_eq!(report(&session).await["subscribed"], json!(["test://a"]));
    session.unsubscribe(LinkId(1), "test://a");
    let _ = done(&mut call(&session, "crash", &json!({}))).await;
    let again = shared(&fixture, Era::Legacy).await;
    assert_eq!(report(&again).await["subscribed"], json!(["test://a"]));
    fixture.upstream.close().await;
}

#[tokio::test]
async fn one_listen_stream_carries_all_subscriptions() {
    let fixture = start(&["modern"]);
    let session = shared(&fixture, Era::Modern).await;
    let limit = Instant::now() + Duration::from_secs(20);
    while report(&session).await["subscribed"].as_array().unwrap().is_empty() {
        assert!(Instant::now() < limit, "no listen stream");
    }
    session.subscribe(LinkId(1), "test://a").await.unwrap();
    let limit = Instant::now() + Duration::from_secs(20);
    loop {
        let report = report(&session).await;
        let last = report["subscribed"].as_array().unwrap().last().cloned().unwrap_or_default();
        if last["resourceSubscriptions"] == json!(["test://a"])
            && !report["cancelled"].as_array().unwrap().is_empty()
        {
            assert_eq!(last["toolsListChanged"], true);
            break;
        }
        assert!(Instant::now() < limit, "{report}");
    }
    fixture.upstream.close().await;
}

#[tokio::test]
async fn each_call_has_its_own_process_if_configured() {
    let mut config = config(&["legacy"]);
    config.sessions = Sessions::Call;
    let fixture = start_with(config, |_| {});
    let mut pids = Vec::new();
    for _ in 0..2 {
        let session = shared(&fixture, Era::Legacy).await;
        pids.push(report(&session).await["pid"].as_u64().unwrap());
    }
    assert_ne!(pids[0], pids[1]);
    until("both have ended", || !pids.iter().any(|pid| alive(*pid))).await;
    fixture.upstream.close().await;
}

#[tokio::test]
async fn the_session_that_was_idle_longest_is_closed_for_a_new_one() {
    let fixture = start_with(config(&["legacy"]), |spec| spec.bounds.caller_sessions_max = 2);
    let mut open = Vec::new();
    let asking = client(r#"{"roots":{}}"#);
    for number in 1..=3 {
        let session =
            fixture.upstream.session(&SessionKey::Legacy(number), &asking, Era::Legacy).await.unwrap();
        assert!(done(&mut call(&session, "echo", &json!({}))).await.is_ok());
        open.push(session);
    }
    until("the first session is closed", || !open[0].is_open()).await;
    assert!(open[1].is_open() && open[2].is_open());
    let _busy = (call(&open[1], "hang", &json!({})), call(&open[2], "hang", &json!({})));
    let refusal = fixture.upstream.session(&SessionKey::Legacy(4), &asking, Era::Legacy).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::UpstreamBusy);
    fixture.upstream.close().await;
}
