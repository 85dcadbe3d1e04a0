use model::{Answer, Form, Method, OperationId, Payload, Request};
use room::{RoomEvent, SENDER_QUEUE_BYTES_MAX};
use std::{future::poll_fn, task::Poll};
use topic::{Joining, PlacedMessage};
use wire::mcpx::Draft;

use super::*;
use crate::call::Reply;
use crate::envelopes::tests::Stage;
use crate::incoming::{Incoming, Names};
use crate::link::{Link, NoOutlet, Respell, plain_client};

fn envelope(from: &str, to: &[&str], kind: &str, payload: &str) -> Arc<Envelope> {
    let id = "1";
    let ts = None;
    let correlation_id = None;
    Arc::new(Envelope::write(&Draft {
        id,
        ts,
        from,
        to,
        kind,
        correlation_id,
        payload: payload.as_bytes(),
    }))
}

fn page(
    me: &str,
    pattern: Option<&str>,
    limit: usize,
    envelopes: Vec<Arc<Envelope>>,
) -> (Vec<String>, u64, bool) {
    let first = Cursor {
        epoch: 7,
        offset: 3,
    };
    let placed = |(offset, message)| PlacedMessage {
        offset,
        received_ms: 0,
        message,
    };
    let messages: Vec<_> = (first.offset..).zip(envelopes).map(placed).collect();
    let next = Cursor {
        offset: first.offset + messages.len() as u64,
        ..first
    };
    let since = Replay {
        first,
        next,
        complete: true,
        messages,
    };
    let pattern = pattern.map(|pattern| Capability::parse(pattern).unwrap());
    let reader = Reader {
        me,
        pattern: pattern.as_ref(),
        limit,
    };
    let (messages, next, more) = reader.page(&since);
    assert_eq!(next.epoch, 7);
    let texts = messages
        .into_iter()
        .map(|message| match (message.payload, message.cut) {
            (Some(payload), None) => payload.get().to_owned(),
            (None, Some(cut)) => format!("{} of {}", cut.begins.len(), cut.bytes),
            other => panic!("{:?}", other.0),
        });
    (texts.collect(), next.offset, more)
}

#[test]
fn each_participant_reads_its_own_messages() {
    let all = || {
        vec![
            envelope("ann", &[], "chat", "{\"n\":1}"),
            envelope("ann", &["bob"], "chat", "{\"n\":2}"),
            envelope("bob", &["cid", "ann"], "acme/x", "{\"n\":3}"),
            envelope("cid", &["cid"], "mcp/proposal:tools/call:x", "{\"n\":4}"),
        ]
    };
    let texts = |numbers: &[u8]| {
        numbers
            .iter()
            .map(|n| format!("{{\"n\":{n}}}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(page("ann", None, 9, all()), (texts(&[1, 2, 3]), 7, false));
    assert_eq!(page("bob", None, 9, all()), (texts(&[1, 2, 3]), 7, false));
    assert_eq!(page("cid", None, 9, all()), (texts(&[1, 3, 4]), 7, false));
    assert_eq!(page("dan", None, 9, all()), (texts(&[1]), 7, false));
    assert_eq!(
        page("cid", Some("acme/*"), 9, all()),
        (texts(&[3]), 7, false)
    );
    // The cursor is behind the last message that was looked at, returned or not.
    assert_eq!(page("ann", None, 1, all()), (texts(&[1]), 4, true));
    assert_eq!(page("cid", None, 1, all()), (texts(&[1]), 5, true));
    assert_eq!(page("dan", None, 1, all()), (texts(&[1]), 7, false));
    assert_eq!(page("dan", None, 1, vec![]), (vec![], 3, false));
}

#[test]
fn an_answer_is_bounded() {
    let long = |len: usize| {
        envelope(
            "ann",
            &[],
            "chat",
            &format!("{{\"t\":\"{}\"}}", "x".repeat(len - 8)),
        )
    };
    let (texts, next, more) = page(
        "bob",
        None,
        9,
        vec![long(PAYLOAD_BYTES_MAX), long(PAYLOAD_BYTES_MAX + 1)],
    );
    assert_eq!((texts[0].len(), next, more), (PAYLOAD_BYTES_MAX, 5, false));
    assert_eq!(
        texts[1],
        format!("{PAYLOAD_BYTES_MAX} of {}", PAYLOAD_BYTES_MAX + 1)
    );
    let fits = ANSWER_BYTES_MAX / PAYLOAD_BYTES_MAX;
    let many = vec![long(PAYLOAD_BYTES_MAX); fits + 1];
    let (texts, next, more) = page("bob", None, 9, many);
    assert_eq!((texts.len(), next, more), (fits, 3 + fits as u64, true));
}

#[test]
fn hidden_characters_of_a_message_are_shown() {
    let (texts, ..) = page(
        "bob",
        None,
        9,
        vec![envelope("ann", &[], "chat", r#"{"t":"a\u202eb"}"#)],
    );
    assert_eq!(texts, [r#"{"t":"a\\u{202e}b"}"#]);
}

/// A caller that reads no answer.
struct Silent;

impl Reply for Silent {
    fn settle(&self, _: &Call, _: &Answer, _: &Respell<'_>) {}

    fn refuse(&self, _: &Call, _: &Refusal) {}
}

#[tokio::test]
async fn a_caller_that_has_its_share_in_the_rooms_queue_waits() {
    let payload = Payload::body(Form::Legacy, r#"{"arguments":{"text":"hello"}}"#);
    let request = Request {
        method: Method::Known("tools/call"),
        target: None,
        progress: None,
        payload,
    };
    let incoming = Incoming::plain(request, None);
    let stage = Stage::new(&["chat"]);
    // Another link of the same participant.
    let dispatch = &stage.dispatch;
    let participant = Arc::clone(&stage.ann.participant);
    let outlet = Arc::new(NoOutlet);
    let capabilities = Arc::clone(&participant.capabilities);
    let link = Link::new(
        dispatch.context.link(),
        participant,
        Form::Legacy,
        plain_client(),
        outlet,
    );
    dispatch
        .join(&link, &capabilities, Joining::default())
        .unwrap();
    let call = Call::new(
        OperationId(9),
        link.opener(),
        incoming,
        Names::Public,
        Arc::new(Silent),
    );
    dispatch
        .room
        .count(stage.ann.queued(), SENDER_QUEUE_BYTES_MAX + 1);
    let frame = envelope("ann", &[], "chat", "{}").frame().clone();
    dispatch.room.push([RoomEvent::Direct {
        link: stage.ann.id,
        frame,
    }]);
    let mut said = std::pin::pin!(say(Arc::clone(dispatch), call));
    // The writer does not run meanwhile.
    assert!(poll_fn(|cx| Poll::Ready(said.as_mut().poll(cx).is_pending())).await);
    assert_eq!(said.await.unwrap().kind, "chat");
}
