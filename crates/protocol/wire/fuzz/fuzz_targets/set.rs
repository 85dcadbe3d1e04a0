//! Any bytes as the descriptors of a peer: what is taken is complete, and reads the same when sent
//! on.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schema::{Descriptors, ToolReference, ToolSchema, json_schema};

fuzz_target!(|bytes: &[u8]| {
    let Ok(descriptors) = Descriptors::read(bytes) else {
        return;
    };
    let set = descriptors.set();
    assert_eq!(
        Descriptors::read(&set).expect("what is sent is read").set(),
        set
    );
    if let Ok(found) = ToolSchema::find(
        &descriptors,
        &ToolReference {
            tool: "t",
            ..ToolReference::default()
        },
    ) {
        json::check(&json_schema(found.input())).expect("JSON");
    }
});
