use proptest::prelude::*;

use super::*;

fn decode(limit: usize, chunks: &[&[u8]]) -> Vec<Result<Received, TooLarge>> {
    let mut decoder = Decoder::new(limit);
    let mut out = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        while let Some(event) = decoder.next_event() {
            out.push(event);
        }
    }
    out
}

fn data(limit: usize, text: &str) -> Vec<Option<String>> {
    let data = |event: Received| String::from_utf8(event.data.to_vec()).unwrap();
    decode(limit, &[text.as_bytes()])
        .into_iter()
        .map(|event| event.ok().map(data))
        .collect()
}

fn some(list: &[&str]) -> Vec<Option<String>> {
    list.iter().map(|text| Some((*text).to_owned())).collect()
}

#[test]
fn writes() {
    let event = Event {
        id: Some("1"),
        event: Some("message"),
        retry_ms: Some(500),
        data: b"{}",
    };
    assert_eq!(
        &event.encode()[..],
        b"id: 1\nevent: message\nretry: 500\ndata: {}\n\n"
    );
    assert_eq!(
        &Event {
            id: Some("p"),
            ..Event::default()
        }
        .encode()[..],
        b"id: p\ndata: \n\n"
    );
}

#[test]
fn no_text_begins_another_field() {
    for evil in ["x\ndata: y\n\nid: 9", "x\rid: 9\r\r", "x\r\n\r\nevent: e"] {
        let bytes = Event {
            id: Some(evil),
            event: Some(evil),
            data: evil.as_bytes(),
            ..Event::default()
        }
        .encode();
        let events = decode(999, &[&bytes]);
        assert_eq!(events.len(), 1, "{evil:?}");
        let event = events[0].clone().unwrap();
        assert_eq!(event.data, evil.replace("\r\n", "\n").replace('\r', "\n"));
        assert_eq!(event.id.unwrap(), evil.replace(['\r', '\n'], ""));
    }
}

#[test]
fn reads() {
    assert_eq!(
        data(99, "\u{feff}data: a\n\ndata:b\r\rdata: c\r\n\r\n"),
        some(&["a", "b", "c"])
    );
    assert_eq!(data(99, "data\ndata: x\n\n"), some(&["\nx"]));
    assert_eq!(data(99, ": keep\n\n:\n\nvendor: x\n\n\n\n"), some(&[]));
    assert_eq!(data(99, "data: unfinished\n"), some(&[]));
    assert_eq!(data(99, "id: 1\n\n"), some(&[""]));
    let events = decode(
        99,
        &[b"id: a\0b\nretry: 1x\nevent: e\nid: 7\nretry: 10\ndata:  z\n\n"],
    );
    let expect = Received {
        id: Some("7".into()),
        event: Some("e".into()),
        retry_ms: Some(10),
        data: Bytes::from_static(b" z"),
    };
    assert_eq!(events, [Ok(expect)]);
}

#[test]
fn the_limit_is_exact_and_costs_one_event() {
    assert_eq!(data(9, "data: 123\n\n"), some(&["123"]));
    assert_eq!(
        data(9, "data: 1234\n\ndata: 5\n\n"),
        [None, Some("5".to_owned())]
    );
    assert_eq!(
        data(13, "data:12\ndata:3\ndata:4\n\ndata: 5\n\n"),
        [None, Some("5".to_owned())]
    );
    assert_eq!(data(13, "data:12\ndata:3\n\n"), some(&["12\n3"]));
    let long = [&[b'x'; 50][..]; 100];
    assert_eq!(decode(99, &long), [Err(TooLarge)]);
}

proptest! {
    #[test]
    fn written_events_are_read_back(id in any::<Option<String>>(), text in any::<String>()) {
        let id = id.map(|id| id.replace(['\r', '\n', '\0'], ""));
        let bytes = Event { id: id.as_deref(), data: text.as_bytes(), ..Event::default() }.encode();
        let events = decode(9999, &[&bytes]);
        prop_assert_eq!(events.len(), 1);
        let event = events[0].clone().unwrap();
        prop_assert_eq!(event.data, text.replace("\r\n", "\n").replace('\r', "\n"));
        prop_assert_eq!(event.id, id);
    }

    #[test]
    fn chunks_do_not_matter(text in "(data:|id:|:|a|\r|\n|\n\n| ){0,30}", cut in 0..60usize, limit in 0..40usize) {
        let bytes = text.as_bytes();
        let (left, right) = bytes.split_at(cut.min(bytes.len()));
        prop_assert_eq!(decode(limit, &[left, right]), decode(limit, &[bytes]));
    }

    #[test]
    fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), limit in 0..50usize) {
        decode(limit, &[&bytes]);
    }
}
