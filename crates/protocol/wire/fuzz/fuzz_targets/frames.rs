//! Any bytes as frames of proto-mcp, in chunks and in one: what is read is what was sent.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use wire::proto::frame::{Frame, Frames, framed, unprefixed};

const LIMIT: usize = 300;

fn read<'c>(chunks: impl Iterator<Item = &'c [u8]>) -> (Vec<Frame>, bool) {
    let mut frames = Frames::new(LIMIT, BytesMut::new());
    let mut found = Vec::new();
    for chunk in chunks {
        frames.buffer().extend_from_slice(chunk);
        while let Some(frame) = frames.next_frame() {
            let ends = matches!(frame, Frame::TooLong(_));
            found.push(frame);
            if ends {
                return (found, true);
            }
        }
    }
    (found, frames.is_cut())
}

fuzz_target!(|bytes: &[u8]| {
    let Some((step, sent)) = bytes.split_first() else {
        return;
    };
    let (whole, is_cut) = read(std::iter::once(sent));
    assert_eq!(
        read(sent.chunks(usize::from(*step).max(1))),
        (whole.clone(), is_cut)
    );
    let mut again = Vec::new();
    for frame in &whole {
        match frame {
            Frame::Message(message) => {
                assert!((1..=LIMIT).contains(&message.len()));
                let prefixed = framed(message).expect("it is within the limit");
                assert_eq!(unprefixed(prefixed.clone()), message);
                again.extend_from_slice(&prefixed);
            }
            Frame::KeepAlive => again.extend_from_slice(&[0; 4]),
            Frame::TooLong(len) => again.extend_from_slice(&len.to_be_bytes()),
        }
    }
    assert!(sent.starts_with(&again));
    assert!(is_cut || again.len() == sent.len());
});
