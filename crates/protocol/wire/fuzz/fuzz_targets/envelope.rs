//! Any bytes as an MCPx envelope. An envelope that was read keeps its frame, and reads the same
//! when written anew.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use wire::digest::ReviewedCall;
use wire::mcpx::check::{Act, strict};
use wire::mcpx::system::System;
use wire::mcpx::{Chat, Draft, Envelope, envelope};

fuzz_target!(|bytes: &[u8]| {
    let frame = Bytes::copy_from_slice(bytes);
    let received = Envelope::receive(frame.clone());
    let Ok(read) = Envelope::read(frame) else {
        return;
    };
    assert_eq!(bytes, &read.frame()[..]);
    assert_eq!(
        received
            .expect("participants take all that gateways take")
            .id(),
        read.id()
    );
    let to: Vec<&str> = read.to().collect();
    let draft = Draft {
        id: read.id(),
        ts: read.ts(),
        from: read.from(),
        to: &to,
        kind: read.kind(),
        correlation_id: read.correlation_id(),
        payload: read.payload(),
    };
    let again = Envelope::read(envelope(&draft)).expect("what is written is read");
    assert_eq!(
        (again.id(), again.kind(), again.payload()),
        (read.id(), read.kind(), read.payload())
    );
    assert!(again.to().eq(read.to()) && again.correlation_id() == read.correlation_id());
    if let Ok(Act::Request(call) | Act::Proposal(call)) = strict(read.kind(), read.payload_bytes())
    {
        assert!(read.kind().contains(call.method()));
        let _ = ReviewedCall {
            method: call.method(),
            to: &to,
            params: call.params(),
            definition: None,
        }
        .digest();
    }
    let _ = (System::read(&read), Chat::read(read.payload()));
});
