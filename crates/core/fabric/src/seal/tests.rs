use proptest::prelude::*;

use super::*;
use crate::window::WINDOW;

const KEY: [u8; 32] = [7; 32];
const A: Incarnation = Incarnation([1; 16]);
const B: Incarnation = Incarnation([2; 16]);
const C: Incarnation = Incarnation([3; 16]);

fn sealer(own: Incarnation) -> FrameSealer {
    FrameSealer::new(ClusterKeys::new(&KEY), own)
}

fn opener(own: Incarnation) -> FrameOpener {
    FrameOpener::new(ClusterKeys::new(&KEY), own)
}

fn sealed(receiver: FrameReceiver, content: &[u8]) -> Bytes {
    sealer(A).seal(receiver, content).unwrap()
}

#[test]
fn a_frame_has_golden_bytes() {
    let frame = sealed(FrameReceiver::One(B), b"hello");
    let golden = "01010101010101010101010101010101010100000000000000008181fa76bf80ea6c569b1aa9a70ccf9c132cb55302";
    let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, golden);
}

#[test]
fn a_frame_opens_for_its_receiver_alone_and_once() {
    let frame = sealed(FrameReceiver::One(B), b"hello");
    let mut own = opener(B);
    let opened = own.open(&frame).unwrap();
    assert_eq!((opened.sender, &opened.content[..]), (A, &b"hello"[..]));
    assert!(!opened.is_to_all);
    assert_eq!(own.open(&frame), Err(OpenError::Repeated));
    assert_eq!(opener(C).open(&frame), Err(OpenError::Foreign));
    // The receiver's next process is another receiver.
    assert_eq!(opener(A).open(&frame), Err(OpenError::Foreign));
    let mut stranger = FrameOpener::new(ClusterKeys::new(&[8; 32]), B);
    assert_eq!(stranger.open(&frame), Err(OpenError::Foreign));
    let to_all = sealed(FrameReceiver::All, b"hello");
    for receiver in [B, C] {
        let mut own = opener(receiver);
        assert!(own.open(&to_all).unwrap().is_to_all);
        assert_eq!(own.open(&to_all), Err(OpenError::Repeated));
    }
}

#[test]
fn forged_frames_are_refused() {
    let mut own = opener(B);
    let frame = sealed(FrameReceiver::One(B), b"hello");
    for at in 0..frame.len() {
        for bit in [1, 2, 128] {
            let mut changed = frame.to_vec();
            changed[at] ^= bit;
            assert_eq!(own.open(&changed), Err(OpenError::Foreign), "byte {at}");
        }
    }
    for length in 0..frame.len() {
        assert_eq!(own.open(&frame[..length]), Err(OpenError::Foreign));
    }
    // None of them has moved the window.
    assert!(own.open(&frame).is_ok());
    // A frame for all is none for one, and the other way round.
    for receiver in [FrameReceiver::All, FrameReceiver::One(B)] {
        let mut turned = sealed(receiver, b"hello").to_vec();
        turned[1] = 3 - turned[1];
        assert_eq!(opener(B).open(&turned), Err(OpenError::Foreign));
    }
}

#[test]
fn frames_of_an_incarnation_that_ended_are_refused() {
    let (mut from, mut own) = (sealer(A), opener(B));
    let frames: Vec<Bytes> = (0..2)
        .map(|_| from.seal(FrameReceiver::One(B), b"x").unwrap())
        .collect();
    assert!(own.open(&frames[0]).is_ok());
    own.end(A);
    assert_eq!(own.open(&frames[0]), Err(OpenError::Ended));
    assert_eq!(own.open(&frames[1]), Err(OpenError::Ended));
}

#[test]
fn a_forgotten_receiver_never_gets_a_number_twice() {
    let mut from = sealer(A);
    let first = from.seal(FrameReceiver::One(B), b"x").unwrap();
    from.forget(B);
    let second = from.seal(FrameReceiver::One(B), b"y").unwrap();
    assert_ne!(first[..HEAD_BYTES], second[..HEAD_BYTES]);
    let mut own = opener(B);
    assert!(own.open(&first).is_ok() && own.open(&second).is_ok());
}

#[test]
fn a_frame_has_a_largest_content() {
    let largest = vec![7; CONTENT_BYTES_MAX];
    let frame = sealed(FrameReceiver::One(B), &largest);
    assert_eq!(frame.len(), FRAME_BYTES_MAX);
    assert_eq!(opener(B).open(&frame).unwrap().content, largest);
    assert_eq!(
        sealer(A).seal(FrameReceiver::All, &[0; CONTENT_BYTES_MAX + 1]),
        None
    );
}

fn nth(number: usize) -> Incarnation {
    let mut name = [9; 16];
    name[..8].copy_from_slice(&(number as u64).to_be_bytes());
    Incarnation(name)
}

#[test]
fn the_sender_that_was_silent_for_longest_makes_way() {
    let mut own = opener(B);
    let mut sealers: Vec<_> = (0..=SENDERS_MAX)
        .map(|number| sealer(nth(number)))
        .collect();
    let mut frame = |number: usize| sealers[number].seal(FrameReceiver::One(B), b"x").unwrap();
    let first = frame(0);
    own.open(&first).unwrap();
    for number in 1..SENDERS_MAX {
        assert_eq!(own.open(&frame(number)).unwrap().made_way, None);
    }
    // A frame that no one of the cluster sealed takes no place.
    let mut foreign = FrameSealer::new(ClusterKeys::new(&[8; 32]), C);
    let foreign = foreign.seal(FrameReceiver::One(B), b"x").unwrap();
    assert_eq!(own.open(&foreign), Err(OpenError::Foreign));
    own.open(&frame(0)).unwrap();
    let opened = own.open(&frame(SENDERS_MAX)).unwrap();
    assert_eq!(opened.made_way, Some(nth(1)));
    assert_eq!(own.open(&frame(1)), Err(OpenError::Ended));
    assert_eq!(own.open(&first), Err(OpenError::Repeated));
    assert!(own.open(&frame(0)).is_ok());
    assert_eq!(own.senders.len(), SENDERS_MAX);
}

#[test]
fn a_sender_that_was_heard_through_frames_for_all_alone_makes_way_first() {
    let mut own = opener(B);
    let mut from = sealer(A);
    own.open(&from.seal(FrameReceiver::One(B), b"x").unwrap())
        .unwrap();
    // More senders than there are places, as of frames of long ago that are sent again.
    for number in 0..2 * SENDERS_MAX {
        let frame = sealer(nth(number)).seal(FrameReceiver::All, b"x");
        assert_eq!(own.open(&frame.unwrap()).unwrap().made_way, None);
    }
    assert_eq!(own.senders.len(), SENDERS_MAX);
    assert!(
        own.open(&from.seal(FrameReceiver::One(B), b"x").unwrap())
            .is_ok()
    );
    // One that was forgotten comes again.
    let again = sealer(nth(0)).seal(FrameReceiver::One(B), b"x").unwrap();
    assert!(own.open(&again).is_ok());
}

#[test]
fn so_many_incarnations_that_ended_are_known() {
    let mut own = opener(B);
    for number in 0..ENDED_MAX + 1 {
        own.end(nth(10_000 + number));
    }
    assert_eq!(own.ended.len(), ENDED_MAX);
}

#[test]
fn a_record_opens_at_its_place_alone() {
    let keys = ClusterKeys::new(&KEY);
    let subject: SubjectName = "pm.a.j.x".parse().unwrap();
    let id = MessageId([4; 16]);
    let record = Record {
        subject: subject.clone(),
        sequence: 1,
        id: Some(id),
        bytes: keys.seal_record(&subject, id, b"record"),
    };
    assert_eq!(keys.open_record(&record).unwrap(), b"record");
    let other_id = Some(MessageId([5; 16]));
    let moved = Record {
        id: other_id,
        ..record.clone()
    };
    assert_eq!(keys.open_record(&moved), None);
    let nameless = Record {
        id: None,
        ..record.clone()
    };
    assert_eq!(keys.open_record(&nameless), None);
    let elsewhere = "pm.a.j.y".parse().unwrap();
    let elsewhere = Record {
        subject: elsewhere,
        ..record.clone()
    };
    assert_eq!(keys.open_record(&elsewhere), None);
    assert_eq!(ClusterKeys::new(&[8; 32]).open_record(&record), None);
    for at in 0..record.bytes.len() {
        let mut bytes = record.bytes.to_vec();
        bytes[at] ^= 1;
        let bytes = bytes.into();
        assert_eq!(
            keys.open_record(&Record {
                bytes,
                ..record.clone()
            }),
            None
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn no_bytes_open_by_chance_or_panic(frame: Vec<u8>, tail: Vec<u8>) {
        let mut own = opener(B);
        prop_assert_eq!(own.open(&frame), Err(OpenError::Foreign));
        let mut headed = vec![FORMAT, TO_ONE];
        headed.extend_from_slice(&A.0);
        headed.extend_from_slice(&tail);
        prop_assert_eq!(own.open(&headed), Err(OpenError::Foreign));
    }

    /// Frames come in any order, some twice: each has its effect once, but for those that are
    /// further behind than the window.
    #[test]
    fn each_frame_has_its_effect_once(order in proptest::collection::vec(0_usize..60, 1..200)) {
        let (mut from, mut own) = (sealer(A), opener(B));
        let frames: Vec<Bytes> =
            (0..60_u8).map(|one| from.seal(FrameReceiver::One(B), &[one]).unwrap()).collect();
        let mut seen = HashSet::new();
        for at in order {
            let expect = seen.insert(at);
            let opened = own.open(&frames[at]);
            prop_assert_eq!(opened.is_ok(), expect);
            if let Ok(opened) = opened {
                prop_assert_eq!(&opened.content[..], &[u8::try_from(at).unwrap()][..]);
            }
        }
    }
}

#[test]
fn frames_from_before_the_window_are_refused() {
    let (mut from, mut own) = (sealer(A), opener(B));
    let first = from.seal(FrameReceiver::One(B), b"first").unwrap();
    let second = from.seal(FrameReceiver::One(B), b"second").unwrap();
    from.pairs.get_mut(&FrameReceiver::One(B)).unwrap().next = WINDOW;
    let last = from.seal(FrameReceiver::One(B), b"last").unwrap();
    own.open(&last).unwrap();
    assert_eq!(own.open(&first), Err(OpenError::Repeated));
    assert!(own.open(&second).is_ok());
}
