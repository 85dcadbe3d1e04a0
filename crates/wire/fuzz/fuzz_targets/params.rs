//! Any bytes as a request with params; edits must leave a message that can be read. Results and URIs too.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use json::Splice;
use wire::mcp::{Era, Params, ResultView, translate, uris};
use wire::rpc::Message;

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = Message::read(Bytes::copy_from_slice(bytes)) else { return };
    if let Ok(params) = Params::read(&message) {
        let mut splice = Splice::new();
        let mut edit = params.edit();
        edit.set_target("a\"b").set_cursor("c").set_meta("k", b"1").remove_meta(&["progressToken"]);
        edit.finish(&mut splice);
        let message = Message::read(message.edited(&splice)).expect("edited params stay params");
        let params = Params::read(&message).expect("edited params can be read");
        assert!(params.members().is_none() || params.meta_raw("k") == Some(b"1"));
    }
    if ResultView::read(&message).is_ok() {
        for to in [Era::Legacy, Era::Modern] {
            let mut splice = Splice::new();
            translate::result(&message, "tools/list", to, &mut splice);
            Message::read(message.edited(&splice)).expect("a translated result stays a message");
        }
    }
    for method in ["tools/call", "prompts/get", "resources/read", "sampling/createMessage"] {
        if let Ok(frame) = uris::rewrite(&message, method, &|uri| Some(format!("x:{uri}"))) {
            Message::read(frame).expect("rewritten URIs leave a message");
        }
    }
});
