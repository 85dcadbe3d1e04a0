//! Any bytes as one message. A message that was read keeps its frame, and a new id must change
//! nothing else.
#![no_main]

use bytes::Bytes;
use json::{Splice, canonical, refuse_duplicates};
use libfuzzer_sys::fuzz_target;
use wire::rpc::{Id, Message, one_line};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(canon) = canonical(bytes) {
        refuse_duplicates(bytes).expect("what occurs twice has no canonical form");
        assert_eq!(canonical(&canon).as_ref(), Ok(&canon));
    }
    let Ok(message) = Message::read(Bytes::copy_from_slice(bytes)) else {
        return;
    };
    assert_eq!(bytes.trim_ascii(), &message.frame()[..]);
    let mut splice = Splice::new();
    message.set_id(&mut splice, &Id::number(7));
    let again = Message::read(message.edited(&splice)).expect("an edited message stays a message");
    assert_eq!(
        (again.shape(), again.method()),
        (message.shape(), message.method())
    );
    let line = one_line(message.frame().clone());
    assert!(!line.contains(&b'\n') && Message::read(line).is_ok());
    let _ = message.error_object();
});
