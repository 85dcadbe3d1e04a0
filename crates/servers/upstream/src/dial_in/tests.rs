//! Dial-in without a room: one participant, its conversations, its disconnects.

use bytes::Bytes;
use client::{Flow, SendError, SendMeta};
use serde_json::{Value, json};
use wire::rpc::{self, Id};

use super::*;

const LINK: LinkId = LinkId(7);
const ENVELOPE_BYTES_MAX: usize = 600;

/// Both ends of a conversation: envelopes to the participant, and calls of the session's inbox.
#[derive(Default)]
struct Ends {
    sent: Mutex<Vec<Value>>,
    received: Mutex<Vec<String>>,
}

impl Outbox for Ends {
    fn stamp(&self) -> (String, String) {
        (
            format!("e{}", self.sent.lock().len()),
            "2026-01-01T00:00:00Z".to_owned(),
        )
    }

    fn send(&self, link: LinkId, envelope: &[u8]) {
        assert_eq!(link, LINK);
        self.sent
            .lock()
            .push(serde_json::from_slice(envelope).unwrap());
    }
}

impl LinkInbox for Ends {
    fn frame(&self, frame: Bytes, about: Option<u64>) -> Flow {
        let received = format!("{} about {about:?}", String::from_utf8_lossy(&frame));
        self.received.lock().push(received);
        Flow::Open
    }

    fn failed(&self, request: u64, failure: LinkError) {
        self.received
            .lock()
            .push(format!("{request} failed: {failure}"));
    }

    fn closed(&self, why: LinkError) {
        self.received.lock().push(format!("closed: {why}"));
    }
}

impl Ends {
    fn take_received(&self) -> Vec<String> {
        std::mem::take(&mut self.received.lock())
    }
}

fn connected() -> (Arc<Ends>, DialIn, ServerLink) {
    let ends = Arc::new(Ends::default());
    let id = ParticipantId::new("worker").unwrap();
    let dial_in = DialIn::new(id, ENVELOPE_BYTES_MAX, Arc::<Ends>::clone(&ends));
    assert_eq!(
        dial_in.dial(Arc::<Ends>::clone(&ends)).err(),
        Some(LinkError::NotConnected)
    );
    dial_in.connected(LINK);
    let link = dial_in.dial(Arc::<Ends>::clone(&ends)).unwrap();
    (ends, dial_in, link)
}

/// Calls the tool `x` in ann's name.
fn request(link: &ServerLink, number: u64, arguments: &str) -> Result<(), SendError> {
    let params = format!("{{\"name\":\"x\",\"arguments\":{arguments}}}");
    let frame = rpc::request(&Id::number(number), "tools/call", Some(params.as_bytes()));
    link.send(
        frame,
        SendMeta {
            from: Some("ann".into()),
            ..SendMeta::request(number)
        },
    )
}

fn envelope(kind: &str, about: &str, to: &[&str], payload: &Value) -> Envelope {
    let mut envelope = json!({ "protocol": "mcpx/v0.1", "id": "a", "from": "worker", "kind": kind, "payload": payload });
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
fn answers_count_from_the_participant_to_the_sender_of_the_request() {
    for (kind, about, to, payload, ends_it, expect) in [
        (KIND, "e0", "ann", result(1), true, Receipt::Accepted),
        (
            "mcp/response:tools/call",
            "e0",
            "ann",
            result(1),
            true,
            Receipt::Accepted,
        ),
        (KIND, "e9", "ann", result(1), false, Receipt::Unrelated),
        (
            "chat",
            "e0",
            "ann",
            json!({ "text": "" }),
            false,
            Receipt::Unrelated,
        ),
        (
            KIND,
            "e0",
            "bob",
            result(1),
            false,
            Receipt::Rejected("`to` does not name the sender of the request".to_owned()),
        ),
        (
            KIND,
            "e0",
            "ann",
            result(2),
            true,
            Receipt::Rejected("its `id` is not the request's".to_owned()),
        ),
    ] {
        let (ends, dial_in, link) = connected();
        request(&link, 1, "{}").unwrap();
        let sent = envelope(kind, about, &[to], &payload);
        assert_eq!(dial_in.receive(&sent), expect, "{sent:?}");
        assert_eq!(dial_in.is_pending("e0"), !ends_it, "{sent:?}");
        let received = ends.take_received();
        let fits = match (&expect, ends_it) {
            (Receipt::Accepted, _) => received == [format!("{payload} about Some(1)")],
            (Receipt::Rejected(_), true) => {
                received.len() == 1 && received[0].starts_with("1 failed")
            }
            (Receipt::Rejected(_) | Receipt::Unrelated, _) => received.is_empty(),
        };
        assert!(fits, "{sent:?}: {received:?}");
    }
}

#[test]
fn an_answer_counts_once() {
    let (ends, dial_in, link) = connected();
    let answer = envelope(KIND, "e0", &["ann"], &result(1));
    request(&link, 1, "{}").unwrap();
    assert_eq!(dial_in.receive(&answer), Receipt::Accepted);
    assert_eq!(ends.take_received().len(), 1);
    assert_eq!(dial_in.receive(&answer), Receipt::Unrelated);
    assert!(ends.take_received().is_empty());
}

#[test]
fn envelopes_carry_the_caller_and_keep_the_size_limit() {
    let (ends, _dial_in, link) = connected();
    request(&link, 1, "{}").unwrap();
    link.send(
        rpc::request(&Id::number(2), "ping", None),
        SendMeta::request(2),
    )
    .unwrap();
    let cancel = |number: u64| {
        let params = format!("{{\"requestId\":{number}}}");
        rpc::notification("notifications/cancelled", Some(params.as_bytes()))
    };
    link.send(cancel(1), SendMeta::default()).unwrap();
    // Only a cancellation refers to another request.
    let params = br#"{"name":"x","requestId":1}"#;
    let frame = rpc::request(&Id::number(3), "tools/call", Some(params));
    link.send(
        frame,
        SendMeta {
            from: Some("bob".into()),
            ..SendMeta::request(3)
        },
    )
    .unwrap();
    let envelopes = std::mem::take(&mut *ends.sent.lock());
    let seen: Vec<_> = envelopes
        .iter()
        .map(|one| [&one["from"], &one["kind"], &one["correlation_id"]].map(Value::as_str))
        .collect();
    let kind = Some("mcp/request:tools/call:x");
    let cancelled = Some("mcp/request:notifications/cancelled");
    assert_eq!(
        seen,
        [
            [Some("ann"), kind, None],
            [Some("portmoot"), Some("mcp/request:ping"), None],
            [Some("ann"), cancelled, Some("e0")],
            [Some("bob"), kind, None],
        ]
    );
    assert!(envelopes.iter().all(|one| one["to"] == json!(["worker"])));
    let room = ENVELOPE_BYTES_MAX - envelopes[0].to_string().len();
    let text = |len: usize| format!("{{\"t\":\"{}\"}}", "x".repeat(len));
    let fits = (0..room)
        .rev()
        .find(|len| request(&link, 4, &text(*len)).is_ok())
        .unwrap();
    assert!(ends.sent.lock()[0].to_string().len() <= ENVELOPE_BYTES_MAX);
    assert_eq!(request(&link, 5, &text(fits + 1)), Err(SendError::TooLarge));
}

#[test]
fn notifications_belong_to_a_pending_request_or_go_to_the_gateway() {
    let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": 1, "progress": 1 } });
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    let of_progress = "mcp/request:notifications/progress";
    let of_change = "mcp/request:notifications/tools/list_changed";
    for (kind, about, to, payload, expect) in [
        (
            of_progress,
            "e0",
            &["ann"][..],
            &progress,
            Receipt::Accepted,
        ),
        (of_progress, "", &["ann"], &progress, Receipt::Unrelated),
        (of_progress, "", &[], &progress, Receipt::Unrelated),
        (of_progress, "e0", &["bob"], &progress, Receipt::Unrelated),
        (of_change, "", &[], &changed, Receipt::Accepted),
        (of_change, "", &["portmoot"], &changed, Receipt::Accepted),
        (of_change, "", &["bob"], &changed, Receipt::Unrelated),
    ] {
        let (ends, dial_in, link) = connected();
        request(&link, 1, "{}").unwrap();
        let sent = envelope(kind, about, to, payload);
        assert_eq!(dial_in.receive(&sent), expect, "{sent:?}");
        assert_eq!(
            ends.take_received().len(),
            usize::from(expect == Receipt::Accepted),
            "{sent:?}"
        );
    }
    let (_, dial_in, _link) = connected();
    let wrong = dial_in.receive(&envelope(of_change, "", &[], &progress));
    assert!(matches!(wrong, Receipt::Rejected(_)), "{wrong:?}");
}

#[tokio::test]
async fn a_disconnect_ends_pending_requests_and_a_new_link_starts_over() {
    const GRACE: Duration = Duration::from_millis(1);
    let (ends, dial_in, link) = connected();
    request(&link, 1, "{}").unwrap();
    assert!(
        dial_in.disconnected(LinkId(8)).is_none(),
        "another link makes no difference"
    );
    let first = dial_in.disconnected(LINK).unwrap();
    assert_eq!(
        ends.take_received(),
        ["closed: the participant disconnected"]
    );
    assert_eq!(request(&link, 2, "{}"), Err(SendError::Closed));
    assert!(dial_in.is_listed());
    dial_in.connected(LINK);
    let second = dial_in.disconnected(LINK).unwrap();
    assert!(
        !dial_in.unlist_after(first, GRACE).await,
        "the second disconnect starts a new grace period"
    );
    assert!(dial_in.is_listed());
    assert_eq!(
        (
            dial_in.unlist_after(second, GRACE).await,
            dial_in.is_listed()
        ),
        (true, false)
    );
    dial_in.connected(LINK);
    let third = dial_in.disconnected(LINK).unwrap();
    dial_in.connected(LINK);
    assert_eq!(
        (
            dial_in.unlist_after(third, GRACE).await,
            dial_in.is_listed()
        ),
        (false, true)
    );
    dial_in.disconnected(LINK).unwrap();
    dial_in.connected(LINK);
    dial_in.connected(LinkId(6));
    assert_eq!(
        dial_in.link(),
        Some(LINK),
        "an older link does not replace a newer one"
    );
    assert!(dial_in.is_listed());
    let _link = dial_in.dial(Arc::<Ends>::clone(&ends)).unwrap();
    let late_answer = envelope(KIND, "e0", &["ann"], &result(1));
    assert_eq!(dial_in.receive(&late_answer), Receipt::Unrelated);
}

#[test]
fn a_disconnect_during_connect_existing_is_not_lost() {
    let ends = Arc::new(Ends::default());
    let id = ParticipantId::new("worker").unwrap();
    let dial_in = DialIn::new(id, ENVELOPE_BYTES_MAX, ends);
    assert_eq!(
        (dial_in.connect_existing(|| None), dial_in.link()),
        (None, None)
    );
    // It disconnects right after the first look-up, before it counts as connected.
    let seen = std::cell::Cell::new(false);
    let left = dial_in.connect_existing(|| {
        let first = !seen.replace(true);
        assert!(!first || dial_in.disconnected(LINK).is_none());
        first.then_some(LINK)
    });
    assert_eq!((left, dial_in.link()), (Some(LINK), Some(LINK)));
    assert_eq!(
        (dial_in.disconnected(LINK).is_some(), dial_in.link()),
        (true, None)
    );
    assert_eq!(
        (dial_in.connect_existing(|| Some(LINK)), dial_in.link()),
        (None, Some(LINK)),
        "it stays connected"
    );
}
