//! Any bytes as a request with params, or as an answer; edits and conversions must leave a message
//! that can be read.
#![no_main]

use bytes::Bytes;
use json::Splice;
use libfuzzer_sys::fuzz_target;
use wire::mcp::relay::{self, OutgoingChanges};
use wire::mcp::{Era, Params};
use wire::rpc::{Id, Message};

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = Message::read(Bytes::copy_from_slice(bytes)) else {
        return;
    };
    if let Ok(params) = Params::read(&message) {
        let mut splice = Splice::new();
        let mut edit = params.edit();
        edit.set_target("a\"b")
            .set("cursor", b"\"c\"")
            .set_meta("k", b"1")
            .remove_meta(&["progressToken"]);
        edit.finish(&mut splice);
        let edited = Message::read(message.edited(&splice)).expect("edited params stay params");
        let edited = Params::read(&edited).expect("edited params can be read");
        assert!(edited.get("_meta").is_none() || edited.meta_raw("k") == Some(b"1"));
        for from in [Era::Legacy, Era::Modern] {
            let request = relay::decode_request(&params, from);
            for to in [Era::Legacy, Era::Modern] {
                let (form, number, own) = (to, 7, Some("own"));
                let out = OutgoingChanges {
                    form,
                    number,
                    own,
                    client_info: None,
                    capabilities: b"{}",
                    log_level: None,
                    related_task: None,
                    tasks: false,
                    trace: None,
                };
                if let Ok(encoded) = relay::encode_request(&request, request.payload.coding, &out) {
                    Message::read(encoded.frame).expect("a request for a server stays a message");
                }
            }
        }
    }
    if message.result().is_some() {
        let (id, public) = (Id::number(7), |uri: &str| Some(format!("x:{uri}")));
        for method in ["tools/list", "tools/call", "prompts/get", "resources/read"] {
            for (from, to) in [(Era::Legacy, Era::Modern), (Era::Modern, Era::Legacy)] {
                let answer = relay::decode_answer(&message, from);
                let encoded = relay::encode_answer(&answer, method, to, &id, &public);
                Message::read(encoded.frame).expect("a converted result stays a message");
            }
        }
    }
});
