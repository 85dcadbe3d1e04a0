//! Any text as header value, any bytes as schema.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::mcp::header::{annotations, decode, encode};

fuzz_target!(|bytes: &[u8]| {
    let _ = annotations(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert_eq!(decode(&encode(text)).as_deref(), Some(text));
        let _ = decode(text);
    }
});
