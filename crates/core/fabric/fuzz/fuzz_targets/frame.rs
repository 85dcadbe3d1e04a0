//! Any bytes as a frame, and as a change of one that a node has sealed.
#![no_main]

use fabric::{ClusterKeys, FrameOpener, FrameReceiver, FrameSealer, Incarnation};
use libfuzzer_sys::fuzz_target;

const SENDER: Incarnation = Incarnation([1; 16]);
const RECEIVER: Incarnation = Incarnation([2; 16]);

fuzz_target!(|bytes: &[u8]| {
    let keys = ClusterKeys::new(&[7; 32]);
    let mut sealer = FrameSealer::new(keys.clone(), SENDER);
    let mut opener = FrameOpener::new(keys, RECEIVER);
    let frame = sealer.seal(FrameReceiver::One(RECEIVER), b"a piece of a channel");
    let frame = frame.expect("a short content");
    // The fuzzer learns the frame itself by what it is compared with.
    for other in [bytes.to_vec(), changed(&frame, bytes)] {
        if other != frame {
            assert!(opener.open(&other).is_err(), "no node has sealed it");
        }
    }
    let opened = opener.open(&frame).expect("what was changed has no effect");
    assert_eq!(*opened.content, *b"a piece of a channel");
    assert!(opener.open(&frame).is_err(), "it is repeated");
});

/// A frame with some of its bytes changed, cut off, or with more behind it.
fn changed(frame: &[u8], by: &[u8]) -> Vec<u8> {
    let Some((length, by)) = by.split_first() else {
        return frame.to_vec();
    };
    let mut changed = frame.to_vec();
    for (byte, change) in changed.iter_mut().zip(by) {
        *byte ^= change;
    }
    // Zero leaves the length.
    match length {
        0 => {}
        128.. => changed.extend_from_slice(by),
        _ => changed.truncate((*length).into()),
    }
    changed
}
