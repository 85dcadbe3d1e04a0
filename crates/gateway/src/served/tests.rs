//! One conversation with a participant that serves, without a room.

use bytes::Bytes;
use client::{Flow, SendError, SendMeta};
use serde_json::{Value, json};
use wire::rpc::{self, Id};

use super::line::LATE_MAX;
use super::*;

const HERE: LinkId = LinkId(7);
const ENVELOPE_BYTES_MAX: usize = 600;

/// What was whispered, and what the session heard.
#[derive(Default)]
struct Ends {
    whispered: Mutex<Vec<Value>>,
    heard: Mutex<Vec<String>>,
}

impl Mail for Ends {
    fn stamp(&self) -> (String, String) {
        (format!("e{}", self.whispered.lock().len()), "2026-01-01T00:00:00Z".to_owned())
    }

    fn whisper(&self, link: LinkId, envelope: &[u8]) {
        assert_eq!(link, HERE);
        self.whispered.lock().push(serde_json::from_slice(envelope).unwrap());
    }
}

impl Inbox for Ends {
    fn frame(&self, frame: Bytes, about: Option<u64>) -> Flow {
        let said = format!("{} about {about:?}", String::from_utf8_lossy(&frame));
        self.heard.lock().push(said);
        Flow::Open
    }

    fn failed(&self, request: u64, failure: LinkError) {
        self.heard.lock().push(format!("{request} failed: {failure}"));
    }

    fn closed(&self, why: LinkError) {
        self.heard.lock().push(format!("closed: {why}"));
    }
}

impl Ends {
    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.heard.lock())
    }
}

fn here() -> (Arc<Ends>, Served, Link) {
    let ends = Arc::new(Ends::default());
    let id = ParticipantId::new("worker").unwrap();
    let served = Served::new(id, ENVELOPE_BYTES_MAX, Arc::<Ends>::clone(&ends), Arc::default());
    assert_eq!(served.dial(Arc::<Ends>::clone(&ends)).err(), Some(LinkError::NotConnected));
    served.arrived(HERE);
    let link = served.dial(Arc::<Ends>::clone(&ends)).unwrap();
    (ends, served, link)
}

/// Asks for the tool `x` in ann's name.
fn ask(link: &Link, number: u64, arguments: &str) -> Result<(), SendError> {
    let params = format!("{{\"name\":\"x\",\"arguments\":{arguments}}}");
    let frame = rpc::request(&Id::number(number), "tools/call", Some(params.as_bytes()));
    link.send(frame, SendMeta { from: Some("ann".into()), ..SendMeta::request(number) })
}

fn envelope(kind: &str, about: &str, to: &[&str], payload: &Value) -> Envelope {
    let mut envelope =
        json!({ "protocol": "mcpx/v0.1", "id": "a", "from": "worker", "kind": kind, "payload": payload });
    if !about.is_empty() {
        envelope["correlation_id"] = json!(about);
    }
    if !to.is_empty() {
        envelope["to"] = json!(to);
    }
    Envelope::read(envelope.to_string().into()).unwrap()
}

fn result(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": {} })
}

const KIND: &str = "mcp/response:tools/call:x";

#[test]
fn what_counts_as_an_answer() {
    for (kind, about, to, payload, private, expect) in [
        (KIND, "e0", "ann", result(1), true, Heard::Taken),
        ("mcp/response:tools/call", "e0", "ann", result(1), true, Heard::Taken),
        (KIND, "e9", "ann", result(1), false, Heard::Nothing),
        ("chat", "e0", "ann", json!({ "text": "" }), false, Heard::Nothing),
        (KIND, "e0", "bob", result(1), false, Heard::Wrong("it is not to whoever asked".to_owned())),
        (KIND, "e0", "ann", result(2), true, Heard::Wrong("its `id` is not the request's".to_owned())),
    ] {
        let (ends, served, link) = here();
        ask(&link, 1, "{}").unwrap();
        let said = envelope(kind, about, &[to], &payload);
        assert_eq!(served.is_private(HERE, &said), private, "{said:?}");
        // Under another link nobody hears what would answer it, and it does not count.
        assert_eq!(served.is_private(LinkId(8), &said), about == "e0", "{said:?}");
        assert_eq!(served.hear(&said), expect, "{said:?}");
        assert_eq!(served.is_open("e0"), !private, "{said:?}");
        let heard = ends.heard();
        let fits = match (&expect, private) {
            (Heard::Taken, _) => heard == [format!("{payload} about Some(1)")],
            (Heard::Wrong(_), true) => heard.len() == 1 && heard[0].starts_with("1 failed"),
            (Heard::Wrong(_) | Heard::Nothing, _) => heard.is_empty(),
        };
        assert!(fits, "{said:?}: {heard:?}");
    }
}

#[test]
fn an_answer_counts_once_and_a_late_one_is_nobodys() {
    let (ends, served, link) = here();
    let said = |number: u64| envelope(KIND, &format!("e{number}"), &["ann"], &result(number + 1));
    ask(&link, 1, "{}").unwrap();
    assert_eq!(served.hear(&said(0)), Heard::Taken);
    assert_eq!(ends.heard().len(), 1);
    assert_eq!(served.hear(&said(0)), Heard::Nothing);
    assert!(served.is_private(HERE, &said(0)) && ends.heard().is_empty());
    // So many are remembered, also of those that nobody waited for.
    for number in 1..LATE_MAX as u64 {
        ask(&link, number + 1, "{}").unwrap();
        link.cancel(number + 1);
    }
    assert!(served.is_private(HERE, &said(0)));
    ask(&link, 9999, "{}").unwrap();
    link.cancel(9999);
    assert!(!served.is_private(HERE, &said(0)) && served.is_private(HERE, &said(1)));
}

#[test]
fn a_request_is_its_callers_and_has_a_longest_length() {
    let (ends, _served, link) = here();
    ask(&link, 1, "{}").unwrap();
    link.send(rpc::request(&Id::number(2), "ping", None), SendMeta::request(2)).unwrap();
    let cancel = |number: u64| {
        let params = format!("{{\"requestId\":{number}}}");
        rpc::notification("notifications/cancelled", Some(params.as_bytes()))
    };
    link.send(cancel(1), SendMeta::default()).unwrap();
    // Only a cancellation is about another request.
    let params = br#"{"name":"x","requestId":1}"#;
    let frame = rpc::request(&Id::number(3), "tools/call", Some(params));
    link.send(frame, SendMeta { from: Some("bob".into()), ..SendMeta::request(3) }).unwrap();
    let whispered = std::mem::take(&mut *ends.whispered.lock());
    let seen: Vec<_> = whispered
        .iter()
        .map(|one| [&one["from"], &one["kind"], &one["correlation_id"]].map(Value::as_str))
        .collect();
    let call = Some("mcp/request:tools/call:x");
    let cancelled = Some("mcp/request:notifications/cancelled");
    assert_eq!(
        seen,
        [
            [Some("ann"), call, None],
            [Some("portmoot"), Some("mcp/request:ping"), None],
            [Some("ann"), cancelled, Some("e0")],
            [Some("bob"), call, None],
        ]
    );
    assert!(whispered.iter().all(|one| one["to"] == json!(["worker"])));
    let room = ENVELOPE_BYTES_MAX - whispered[0].to_string().len();
    let text = |len: usize| format!("{{\"t\":\"{}\"}}", "x".repeat(len));
    let fits = (0..room).rev().find(|len| ask(&link, 4, &text(*len)).is_ok()).unwrap();
    assert!(ends.whispered.lock()[0].to_string().len() <= ENVELOPE_BYTES_MAX);
    assert_eq!(ask(&link, 5, &text(fits + 1)), Err(SendError::TooLarge));
}

#[test]
fn notifications_are_about_an_open_request_or_for_the_gateway() {
    let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": 1, "progress": 1 } });
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    let (of_progress, of_change) =
        ("mcp/request:notifications/progress", "mcp/request:notifications/tools/list_changed");
    for (kind, about, to, payload, expect) in [
        (of_progress, "e0", &["ann"][..], &progress, Heard::Taken),
        (of_progress, "", &["ann"], &progress, Heard::Nothing),
        (of_progress, "", &[], &progress, Heard::Nothing),
        (of_progress, "e0", &["bob"], &progress, Heard::Nothing),
        (of_change, "", &[], &changed, Heard::Taken),
        (of_change, "", &["portmoot"], &changed, Heard::Taken),
        (of_change, "", &["bob"], &changed, Heard::Nothing),
    ] {
        let (ends, served, link) = here();
        ask(&link, 1, "{}").unwrap();
        let said = envelope(kind, about, to, payload);
        assert_eq!(served.hear(&said), expect, "{said:?}");
        assert_eq!(ends.heard().len(), usize::from(expect == Heard::Taken), "{said:?}");
        assert_eq!(served.is_private(HERE, &said), about == "e0" && to == ["ann"], "{said:?}");
    }
    let (_, served, _link) = here();
    let wrong = served.hear(&envelope(of_change, "", &[], &progress));
    assert!(matches!(wrong, Heard::Wrong(_)), "{wrong:?}");
}

#[test]
fn leaving_ends_what_is_open_and_coming_again_begins_anew() {
    let (ends, served, link) = here();
    ask(&link, 1, "{}").unwrap();
    assert_eq!(served.left(LinkId(8)), None, "another link is nothing to it");
    let parting = served.left(HERE).unwrap();
    assert_eq!(ends.heard(), ["closed: the participant disconnected"]);
    assert_eq!(ask(&link, 2, "{}"), Err(SendError::Closed));
    assert!(served.is_listed());
    served.arrived(HERE);
    assert_eq!(served.left(HERE), None, "its absence is waited for already");
    let Absence::Anew(second) = served.waited(parting) else { panic!("it left a second time") };
    assert!(served.is_listed());
    assert_eq!((served.waited(second), served.is_listed()), (Absence::Unlisted, false));
    served.arrived(HERE);
    let third = served.left(HERE).unwrap();
    served.arrived(HERE);
    assert_eq!((served.waited(third), served.is_listed()), (Absence::Over, true));
    served.left(HERE).unwrap();
    served.arrived(HERE);
    served.arrived(LinkId(6));
    assert_eq!(served.here(), Some(HERE), "an older link that comes later is nothing");
    assert!(served.is_listed());
    let _link = served.dial(Arc::<Ends>::clone(&ends)).unwrap();
    let late = envelope(KIND, "e0", &["ann"], &result(1));
    assert!(served.is_private(HERE, &late), "nobody hears what answers an older conversation");
    assert_eq!(served.hear(&late), Heard::Nothing);
}

#[test]
fn what_answers_an_older_conversation_is_private_whatever_took_its_place() {
    let late = Arc::<Late>::default();
    let (ends, id) = (Arc::new(Ends::default()), ParticipantId::new("worker").unwrap());
    let new = || Served::new(id.clone(), ENVELOPE_BYTES_MAX, Arc::<Ends>::clone(&ends), Arc::clone(&late));
    let said = |about: &str| envelope(KIND, about, &["ann"], &result(1));
    let older = new();
    older.arrived(HERE);
    let link = older.dial(Arc::<Ends>::clone(&ends)).unwrap();
    ask(&link, 1, "{}").unwrap();
    // Another has its place before the older conversation has ended.
    let newer = new();
    let private = |about: &str| newer.is_private(HERE, &said(about));
    assert!(private("e0") && !private("e9"));
    assert!(late.holds("e0"), "where it serves no more");
    newer.arrived(HERE);
    assert!(private("e0") && !private("e9"), "it is not asked anything yet");
    assert_eq!(newer.hear(&said("e0")), Heard::Nothing);
    drop((older, link));
    assert!(private("e0") && !private("e9"));
    let _link = newer.dial(Arc::<Ends>::clone(&ends)).unwrap();
    assert!(private("e0") && !private("e9"));
    // It comes again under another link: there is no conversation until it is asked.
    newer.left(HERE);
    newer.arrived(LinkId(9));
    assert!(newer.is_private(LinkId(9), &said("e0")) && !newer.is_private(LinkId(9), &said("e9")));
}

#[test]
fn one_that_leaves_while_it_is_met_is_gone() {
    let (ends, id) = (Arc::new(Ends::default()), ParticipantId::new("worker").unwrap());
    let served = Served::new(id, ENVELOPE_BYTES_MAX, ends, Arc::default());
    assert_eq!((served.meet(|| None), served.here()), (None, None));
    // It leaves as soon as it was seen: whoever tells that does not find it.
    let seen = std::cell::Cell::new(false);
    let left = served.meet(|| {
        let first = !seen.replace(true);
        assert!(!first || served.left(HERE).is_none());
        first.then_some(HERE)
    });
    assert_eq!((left, served.here()), (Some(HERE), Some(HERE)));
    assert_eq!((served.left(HERE), served.here()), (Some(1), None));
    assert_eq!((served.meet(|| Some(HERE)), served.here()), (None, Some(HERE)), "it stays");
}
