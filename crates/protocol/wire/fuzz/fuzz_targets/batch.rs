//! Any bytes as a batch.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use wire::rpc::read_batch;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(batch) = read_batch(&Bytes::copy_from_slice(bytes), 16) {
        assert!((1..=16).contains(&batch.len()));
    }
});
