//! Listen requests: order of the acknowledgement, and room for what comes before it.

use std::sync::Arc;

use control::Bounds;
use platform::Shares;

use super::*;
use crate::stream::{Lifetime, Reader, Stream};

fn listening(bytes_max: usize) -> (ListenReply<Arc<Stream>>, Reader) {
    let held = Shares::new(bytes_max, bytes_max).of("ann");
    let bounds = Bounds {
        limits: Arc::default(),
        held,
    };
    let out = Stream::new(1, Lifetime::Reader, 1, &bounds);
    let reader = out.read(None).unwrap();
    (ListenReply::new(out), reader)
}

fn frame(method: &str) -> Bytes {
    tagged(&rpc::notification(method, Some(b"{}")), &Id::number(7))
}

fn task(id: &str) -> About {
    About::Task(id.into())
}

/// The methods that were sent, each under the id of the request.
fn sent(reader: &mut Reader) -> Vec<String> {
    let items = std::iter::from_fn(|| reader.try_next());
    let read = |frame: Bytes| {
        assert!(
            String::from_utf8_lossy(&frame).contains(r#"subscriptionId":7"#),
            "{frame:?}"
        );
        Message::read(frame).unwrap().method().to_owned()
    };
    items.map(|item| read(item.frame)).collect()
}

#[test]
fn notifications_before_the_acknowledgement_follow_it() {
    let (listening, mut out) = listening(1 << 20);
    for (about, method) in [
        (task("t"), "t-1"),
        (task("u"), "u-1"),
        (About::List(ListKind::Tools), "list"),
        (task("t"), "t-2"),
        (About::Resource("t".into()), "of-a-resource"),
    ] {
        listening.pass(about, frame(method)).unwrap();
    }
    assert_eq!(sent(&mut out), Vec::<String>::new());
    assert_eq!(
        listening.acknowledge(frame("acknowledged"), vec!["t".to_owned()]),
        Some(Ok(()))
    );
    listening.pass(task("t"), frame("t-3")).unwrap();
    listening.pass(task("u"), frame("u-2")).unwrap();
    assert_eq!(
        sent(&mut out),
        ["acknowledged", "list", "t-2", "of-a-resource", "t-3"],
        "the latest of each, and none about a task that was not agreed on"
    );
}

#[test]
fn notifications_before_the_acknowledgement_are_in_the_account() {
    let len = frame("t-1").len();
    let (exact, out) = listening(len);
    exact.pass(task("t"), frame("t-1")).unwrap();
    assert!(!out.stream.bounds.held.has_room(1));
    drop(exact);
    assert!(
        out.stream.bounds.held.has_room(len),
        "it goes with the request"
    );
    let (short, mut out) = listening(len - 1);
    short.pass(task("t"), frame("t-1")).unwrap();
    assert_eq!(
        short.acknowledge(frame("acknowledged"), vec!["t".to_owned()]),
        None
    );
    assert_eq!(sent(&mut out), Vec::<String>::new());
}

#[test]
fn a_request_that_was_answered_sends_nothing_more() {
    let (listening, mut out) = listening(1 << 20);
    assert!(listening.end_once() && !listening.end_once());
    listening.pass(task("t"), frame("t-1")).unwrap();
    assert_eq!(
        listening.acknowledge(frame("acknowledged"), Vec::new()),
        Some(Ok(()))
    );
    assert_eq!(sent(&mut out), Vec::<String>::new());
}
