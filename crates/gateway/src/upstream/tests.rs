//! Supervision against a real child process (`tests/echo.py`).

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
    EraChoice, Limits, Origin, Secret, ServerConfig, Sessions, StdioConfig, Timeouts, Transport,
};

/// What a call's sink heard.
#[derive(Debug)]
enum Heard {
    Notice(String, Value),
    Question(QuestionId, Value),
    Done(Result<Value, Refusal>),
}

struct Sink(mpsc::UnboundedSender<Heard>);

impl CallSink for Sink {
    fn notice(&self, method: &str, frame: Bytes) {
        let _ = self.0.send(Heard::Notice(method.to_owned(), serde_json::from_slice(&frame).unwrap()));
    }

    fn question(&self, question: QuestionId, message: Message) {
        let _ = self.0.send(Heard::Question(question, serde_json::from_slice(message.frame()).unwrap()));
    }

    fn done(&self, end: Result<Answer, Refusal>) {
        let end = end.map(|answer| serde_json::from_slice(&answer.frame(Splice::new())).unwrap());
        let _ = self.0.send(Heard::Done(end));
    }
}

#[derive(Default)]
struct Listener(Mutex<Vec<String>>);

impl SessionSink for Listener {
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

struct House {
    upstream: Arc<Upstream>,
    listener: Arc<Listener>,
}

fn config(args: &[&str]) -> ServerConfig {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/upstream/tests/echo.py");
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

fn start_with(config: ServerConfig, edit: impl FnOnce(&mut UpstreamSpec)) -> House {
    let listener = Arc::new(Listener::default());
    let mut spec = UpstreamSpec::new(config, &Limits::default());
    spec.bounds.probe = Duration::from_secs(2);
    edit(&mut spec);
    let ground = Ground {
        guard: None,
        identity: Bytes::from_static(br#"{"name":"portmoot","version":"0"}"#),
        sink: Arc::clone(&listener) as Arc<dyn SessionSink>,
        dialer: None,
    };
    House { upstream: Upstream::start(spec, ground), listener }
}

fn start(args: &[&str]) -> House {
    start_with(config(args), |_| {})
}

fn hello(capabilities: &'static str) -> Hello {
    Hello {
        capabilities: Bytes::from_static(capabilities.as_bytes()),
        client_info: None,
        version: wire::mcp::Version::V2025_11_25,
    }
}

async fn shared(house: &House, era: Era) -> Arc<Session> {
    house.upstream.session(&SessionKey::Legacy(1), &hello("{}"), era).await.unwrap()
}

fn modern_meta() -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}})
}

/// Calls a tool; the id and the progress token are strings, as a caller may choose.
fn try_call(
    session: &Session,
    tool: &str,
    arguments: &Value,
) -> Result<(Ticket, mpsc::UnboundedReceiver<Heard>), Refusal> {
    let mut meta = if session.era() == Era::Modern { modern_meta() } else { json!({}) };
    meta["progressToken"] = json!("mine");
    let frame = json!({"jsonrpc": "2.0", "id": "a-1", "method": "tools/call",
        "params": {"name": "public", "arguments": arguments, "_meta": meta}});
    let message = Message::read(Bytes::from(frame.to_string())).unwrap();
    let params = Params::read(&message).unwrap();
    let mut edit = params.edit();
    edit.set_target(tool);
    let (sender, heard) = mpsc::unbounded_channel();
    let outgoing = Outgoing { params: &params, edit, target: Some(tool), from: "ann" };
    session.call(outgoing, Arc::new(Sink(sender))).map(|ticket| (ticket, heard))
}

fn call(session: &Session, tool: &str, arguments: &Value) -> mpsc::UnboundedReceiver<Heard> {
    try_call(session, tool, arguments).unwrap().1
}

async fn next(heard: &mut mpsc::UnboundedReceiver<Heard>) -> Heard {
    tokio::time::timeout(Duration::from_secs(20), heard.recv())
        .await
        .expect("nothing heard")
        .expect("sink dropped")
}

async fn done(heard: &mut mpsc::UnboundedReceiver<Heard>) -> Result<Value, Refusal> {
    loop {
        if let Heard::Done(end) = next(heard).await {
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
        assert!(Instant::now() < limit, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn alive(pid: u64) -> bool {
    // A zombie has no command line.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

#[tokio::test]
async fn a_legacy_server_is_found_out_listed_and_called() {
    let house = start(&["legacy"]);
    let session = shared(&house, Era::Modern).await;
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
    let status = house.upstream.status();
    assert_eq!((status.state, status.eras), (State::Ready, vec![Era::Legacy]));
    house.upstream.close().await;
    until("the child has ended", || !alive(report["pid"].as_u64().unwrap())).await;
    assert_eq!(house.upstream.status().state, State::Down);
}

#[tokio::test]
async fn a_server_that_is_silent_to_the_probe_is_legacy() {
    let house = start_with(config(&["legacy", "silent-probe"]), |spec| {
        spec.bounds.probe = Duration::from_millis(300);
    });
    let session = shared(&house, Era::Legacy).await;
    assert_eq!(session.era(), Era::Legacy);
    house.upstream.close().await;
}

#[tokio::test]
async fn a_modern_server_that_starts_slower_than_the_probe_is_modern() {
    let house = start_with(config(&["modern", "slow-start", "0.6"]), |spec| {
        spec.bounds.probe = Duration::from_millis(100);
    });
    let session = shared(&house, Era::Legacy).await;
    assert_eq!(session.era(), Era::Modern);
    let answer = done(&mut call(&session, "echo", &json!({}))).await.unwrap();
    assert_eq!(answer["result"]["resultType"], "complete");
    house.upstream.close().await;
}

#[tokio::test]
async fn a_server_of_both_eras_has_one_process_for_each() {
    let house = start(&["both"]);
    let modern = shared(&house, Era::Modern).await;
    let legacy = shared(&house, Era::Legacy).await;
    assert_eq!((modern.era(), legacy.era()), (Era::Modern, Era::Legacy));
    assert_ne!(report(&modern).await["pid"], report(&legacy).await["pid"]);
    assert!(Arc::ptr_eq(&modern, &shared(&house, Era::Modern).await));
    assert_eq!(house.upstream.status().sessions, 2);
    house.upstream.close().await;
}

#[tokio::test]
async fn progress_comes_back_under_the_callers_token_and_extends_the_time() {
    let mut config = config(&["legacy"]);
    config.timeouts.tools.insert("progress".to_owned(), Duration::from_millis(900));
    let house = start_with(config, |_| {});
    let session = shared(&house, Era::Legacy).await;
    let mut heard = call(&session, "progress", &json!({"steps": 5, "wait": 0.4}));
    for step in 1..=5 {
        match next(&mut heard).await {
            Heard::Notice(method, frame) => {
                assert_eq!(method, "notifications/progress");
                assert_eq!(frame["params"], json!({"progressToken": "mine", "progress": step}));
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(done(&mut heard).await.is_ok());
    house.upstream.close().await;
}

#[tokio::test]
async fn questions_reach_only_the_caller_that_declared_them() {
    let house = start(&["legacy"]);
    let shared = shared(&house, Era::Legacy).await;
    let refused = text_of(&done(&mut call(&shared, "ask", &json!({}))).await.unwrap());
    assert_eq!(refused["code"], -32601);

    let key = SessionKey::Legacy(7);
    let own = house.upstream.session(&key, &hello(r#"{"elicitation":{}}"#), Era::Legacy).await.unwrap();
    assert_eq!(own.key(), &key);
    let mut heard = call(&own, "ask", &json!({}));
    let question = match next(&mut heard).await {
        Heard::Question(question, message) => {
            assert_eq!(message["method"], "elicitation/create");
            question
        }
        other => panic!("{other:?}"),
    };
    let answer =
        Message::read(Bytes::from_static(br#"{"jsonrpc":"2.0","id":99,"result":{"action":"decline"}}"#));
    own.answer(question, &answer.unwrap()).unwrap();
    assert_eq!(text_of(&done(&mut heard).await.unwrap()), json!({"action": "decline"}));
    assert!(
        own.answer(
            question,
            &Message::read(Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#)).unwrap()
        )
        .is_err()
    );

    let pid = report(&own).await["pid"].as_u64().unwrap();
    assert_eq!(house.upstream.status().sessions, 2);
    house.upstream.leave(&key);
    until("the caller's child has ended", || !alive(pid)).await;
    assert!(shared.is_open());
    house.upstream.close().await;
}

#[tokio::test]
async fn calls_of_a_modern_caller_with_questions_run_one_after_the_other() {
    let house = start(&["legacy"]);
    let key = SessionKey::Principal { participant: ParticipantId::new("scout").unwrap(), capabilities: 5 };
    let own = house.upstream.session(&key, &hello(r#"{"elicitation":{}}"#), Era::Modern).await.unwrap();
    let mut first = call(&own, "ask", &json!({}));
    let mut second = call(&own, "echo", &json!({}));
    let Heard::Question(question, _) = next(&mut first).await else { panic!("no question") };
    assert!(second.try_recv().is_err());
    let answer = Message::read(Bytes::from_static(br#"{"jsonrpc":"2.0","id":99,"result":{}}"#)).unwrap();
    own.answer(question, &answer).unwrap();
    assert!(done(&mut first).await.is_ok());
    assert!(done(&mut second).await.is_ok());
    house.upstream.close().await;
}

#[tokio::test]
async fn many_changes_are_one_and_the_manifest_follows() {
    for era in ["legacy", "modern"] {
        let house = start(&[era]);
        let session = shared(&house, Era::Legacy).await;
        assert!(done(&mut call(&session, "change", &json!({}))).await.is_ok());
        until("the new tool is listed", || {
            session.manifest().tools.items.iter().any(|tool| tool.key == "late")
        })
        .await;
        let changes = house.listener.0.lock().iter().filter(|what| *what == "changed").count();
        assert!((1..=3).contains(&changes), "{changes} changes");
        assert_eq!(house.upstream.manifest(), session.manifest());
        house.upstream.close().await;
    }
}

#[tokio::test]
async fn subscriptions_are_counted_and_made_again() {
    let house = start(&["legacy"]);
    let session = shared(&house, Era::Legacy).await;
    for link in [1, 2] {
        assert_eq!(session.subscribe(LinkId(link), "test://a").await.unwrap().shape(), Shape::Result);
    }
    assert_eq!(report(&session).await["subscribed"], json!(["test://a"]));
    session.unsubscribe(LinkId(1), "test://a");
    let _ = done(&mut call(&session, "crash", &json!({}))).await;
    let again = shared(&house, Era::Legacy).await;
    assert_eq!(report(&again).await["subscribed"], json!(["test://a"]));
    house.upstream.close().await;
}

#[tokio::test]
async fn one_listen_stream_carries_the_union() {
    let house = start(&["modern"]);
    let session = shared(&house, Era::Modern).await;
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
    house.upstream.close().await;
}

#[tokio::test]
async fn each_call_has_its_own_process_where_configured() {
    let mut config = config(&["legacy"]);
    config.sessions = Sessions::Call;
    let house = start_with(config, |_| {});
    let mut pids = Vec::new();
    for _ in 0..2 {
        let session = shared(&house, Era::Legacy).await;
        pids.push(report(&session).await["pid"].as_u64().unwrap());
    }
    assert_ne!(pids[0], pids[1]);
    until("both have ended", || !pids.iter().any(|pid| alive(*pid))).await;
    house.upstream.close().await;
}

#[tokio::test]
async fn the_caller_who_was_idle_longest_makes_room() {
    let house = start_with(config(&["legacy"]), |spec| spec.bounds.caller_sessions_max = 2);
    let mut open = Vec::new();
    let asking = hello(r#"{"roots":{}}"#);
    for number in 1..=3 {
        let session =
            house.upstream.session(&SessionKey::Legacy(number), &asking, Era::Legacy).await.unwrap();
        assert!(done(&mut call(&session, "echo", &json!({}))).await.is_ok());
        open.push(session);
    }
    until("the first has made room", || !open[0].is_open()).await;
    assert!(open[1].is_open() && open[2].is_open());
    let _busy = (call(&open[1], "hang", &json!({})), call(&open[2], "hang", &json!({})));
    let refusal = house.upstream.session(&SessionKey::Legacy(4), &asking, Era::Legacy).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::UpstreamBusy);
    house.upstream.close().await;
}
