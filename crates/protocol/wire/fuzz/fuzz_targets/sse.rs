//! Any bytes as an event stream, in two chunks and in one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::sse::{Decoder, Event};

fn read(chunks: &[&[u8]]) -> Vec<Result<wire::sse::Received, wire::sse::TooLarge>> {
    let mut decoder = Decoder::new(64);
    for chunk in chunks {
        decoder.push(chunk);
    }
    std::iter::from_fn(|| decoder.next_event()).collect()
}

fuzz_target!(|bytes: &[u8]| {
    let (left, right) = bytes.split_at(bytes.len() / 2);
    assert_eq!(read(&[left, right]), read(&[bytes]));
    let mut decoder = Decoder::new(bytes.len() * 8 + 64);
    decoder.push(
        &Event {
            data: bytes,
            ..Event::default()
        }
        .encode(),
    );
    assert!(matches!(decoder.next_event(), Some(Ok(_))));
    assert!(decoder.next_event().is_none());
});
