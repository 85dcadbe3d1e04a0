//! Streams: order, resumption, bounds.

use super::*;
use config::GatewayLimits;
use platform::Shares;
use upstream::config::ServerLimits;

const MESSAGES_MAX: usize = 5;
const BYTES_MAX: usize = 4096;

fn stream(lifetime: Lifetime, answers: u32) -> Arc<Stream> {
    let servers = ServerLimits {
        queue_len_max: 8,
        ..ServerLimits::default()
    };
    let limits = GatewayLimits {
        servers,
        held_bytes_max: BYTES_MAX,
        resume_events_max: MESSAGES_MAX,
        resume_bytes_max: 64,
        ..GatewayLimits::default()
    };
    let held = Shares::new(2 * BYTES_MAX, 2 * BYTES_MAX).of("ann");
    Stream::new(
        1,
        lifetime,
        answers,
        &Bounds {
            limits: Arc::new(limits),
            held,
        },
    )
}

fn frame(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn drain(reader: &mut Reader) -> Vec<String> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut got = Vec::new();
    while let Poll::Ready(Some(item)) = reader.poll_next(&mut cx) {
        got.push(String::from_utf8(item.frame.to_vec()).unwrap());
    }
    got
}

#[test]
fn ends_with_its_answer() {
    let stream = stream(Lifetime::Reader, 1);
    stream.send(frame("a"), None).unwrap();
    stream.answer(frame("b"));
    assert_eq!(stream.send(frame("c"), None), Err(Unsent::Ended));
    let mut reader = stream.read(None).unwrap();
    assert_eq!(drain(&mut reader), ["a", "b"]);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(reader.poll_next(&mut cx), Poll::Ready(None)));
}

#[test]
fn a_reader_that_comes_back_gets_the_messages_it_missed() {
    let stream = stream(Lifetime::Resumable, 1);
    let mut reader = stream.read(None).unwrap();
    stream.send(frame("a"), None).unwrap();
    stream.send(frame("b"), None).unwrap();
    assert_eq!(drain(&mut reader), ["a", "b"]);
    drop(reader);
    stream.send(frame("c"), None).unwrap();
    let mut again = stream.read(Some(1)).unwrap();
    assert_eq!(drain(&mut again), ["b", "c"]);
    let mut fresh = stream.read(None).unwrap();
    stream.answer(frame("d"));
    assert_eq!(drain(&mut fresh), ["d"]);
    assert_eq!(
        drain(&mut again),
        Vec::<String>::new(),
        "the earlier reader is detached"
    );
    assert!(stream.read(Some(99)).is_none());
}

#[test]
fn the_replay_is_bounded() {
    let stream = stream(Lifetime::Resumable, 0);
    let mut reader = stream.read(None).unwrap();
    for n in 0..8 {
        stream.send(frame(&n.to_string()), None).unwrap();
    }
    assert_eq!(drain(&mut reader).len(), 8);
    assert!(stream.read(Some(2)).is_none(), "3 is forgotten");
    assert_eq!(
        drain(&mut stream.read(Some(3)).unwrap()).len(),
        MESSAGES_MAX
    );
    stream.send(Bytes::from(vec![b'x'; 65]), None).unwrap();
    drain(&mut reader);
    drain(&mut stream.read(Some(8)).unwrap());
    assert!(
        stream.read(Some(8)).is_none(),
        "a message beyond the bound is not kept"
    );
}

#[test]
fn progress_is_merged_before_the_slow_reader_pays() {
    let stream = stream(Lifetime::Reader, 1);
    for n in 0..8 {
        stream
            .send(frame(&n.to_string()), Some(frame("token")))
            .unwrap();
    }
    stream.send(frame("newest"), Some(frame("token"))).unwrap();
    assert_eq!(stream.send(frame("log"), None), Err(Unsent::Full));
    assert!(stream.has_ended());
}

#[test]
fn a_stream_without_answers_ends_for_its_slow_reader_only() {
    let stream = stream(Lifetime::Resumable, 0);
    let mut slow = stream.read(None).unwrap();
    for n in 0..8 {
        stream.send(frame(&n.to_string()), None).unwrap();
    }
    assert_eq!(stream.send(frame("too many"), None), Err(Unsent::Full));
    assert_eq!(drain(&mut slow).len(), 8, "without a gap");
    assert!(stream.has_ended());
    drop(slow);
    stream.send(frame("later"), None).unwrap();
    let mut next = stream.read(None).unwrap();
    assert_eq!(drain(&mut next), ["later"]);
    for n in 0..9 {
        let _ = stream.send(frame(&n.to_string()), None);
    }
    let mut other = stream.read(None).unwrap();
    assert!(
        !stream.has_ended(),
        "a reader that replaces another finds it open too"
    );
    assert_eq!(drain(&mut other).len(), 8);
    stream.end();
    drop(other);
    assert!(stream.has_ended(), "a session's end is for good");
}

#[test]
fn unsent_bytes_are_bounded_and_an_answer_always_has_its_place() {
    let stream = stream(Lifetime::Reader, 1);
    stream
        .send(Bytes::from(vec![b'x'; BYTES_MAX]), None)
        .unwrap();
    stream.answer(frame("answer"));
    assert_eq!(drain(&mut stream.read(None).unwrap()).len(), 2);
}

#[test]
fn all_streams_share_one_account() {
    let first = stream(Lifetime::Reader, 0);
    let second = Stream::new(2, Lifetime::Reader, 0, &first.bounds);
    let third = Stream::new(3, Lifetime::Reader, 0, &first.bounds);
    let large = || Bytes::from(vec![b'x'; BYTES_MAX]);
    first.send(large(), None).unwrap();
    second.send(large(), None).unwrap();
    assert_eq!(
        third.send(frame("x"), None),
        Err(Unsent::Full),
        "the bound of all is reached"
    );
    assert!(!first.bounds.held.has_room(1));
    drain(&mut second.read(None).unwrap());
    assert!(
        first.bounds.held.has_room(BYTES_MAX),
        "messages that were read are not held any more"
    );
    let held = Arc::clone(&first.bounds.held);
    drop(first);
    assert!(
        held.has_room(2 * BYTES_MAX),
        "nor those of a stream that ended unread"
    );
}

#[test]
fn a_stream_without_a_reader_stays_small() {
    let stream = stream(Lifetime::Resumable, 0);
    for n in 0..MESSAGES_MAX + 5 {
        stream.send(frame(&n.to_string()), None).unwrap();
    }
    for _ in 0..10 {
        stream
            .send_latest(frame("tools"), frame("changed"))
            .unwrap();
    }
    let read = drain(&mut stream.read(None).unwrap());
    assert_eq!(read.len(), MESSAGES_MAX);
    assert_eq!(read.iter().filter(|text| *text == "changed").count(), 1);
    stream.send(Bytes::from(vec![b'x'; 64]), None).unwrap();
    stream.send(frame("y"), None).unwrap();
    assert_eq!(drain(&mut stream.read(None).unwrap()), ["y"]);
}
