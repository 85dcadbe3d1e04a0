//! Any bytes as lines, in two chunks and in one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::line::{Line, Lines};

fn read(chunks: &[&[u8]]) -> Vec<Line> {
    let mut lines = Lines::new(32);
    let mut out = Vec::new();
    for chunk in chunks {
        lines.buffer().extend_from_slice(chunk);
        out.extend(std::iter::from_fn(|| lines.next_line()));
    }
    out.extend(lines.finish());
    out
}

fuzz_target!(|bytes: &[u8]| {
    let (left, right) = bytes.split_at(bytes.len() / 2);
    assert_eq!(read(&[left, right]), read(&[bytes]));
});
